/** Who may still learn the end of a task from a reply, so that it needs no notice (SPEC "States and notices"). */
export interface Claims {
  /** replies under way that will tell the outcome if they get through */
  readonly waiting: number
  /** a reply has told it */
  readonly told: boolean
  readonly ended: boolean
  /** the notice is on its way or out */
  readonly noticed: boolean
  /** a cancel came before the end */
  readonly cancelled: boolean
}

export const none: Claims = { waiting: 0, told: false, ended: false, noticed: false, cancelled: false }

export const take = (claims: Claims): Claims => ({ ...claims, waiting: claims.waiting + 1 })

export const cancel = (claims: Claims): Claims => claims.ended ? claims : { ...claims, cancelled: true }

/** A notice is due once: after the end, when nobody was told and nobody is about to be. */
const settle = (claims: Claims): [due: boolean, claims: Claims] => {
  const due = claims.ended && !claims.told && claims.waiting === 0 && !claims.noticed
  return [due, due ? { ...claims, noticed: true } : claims]
}

export const end = (claims: Claims) => settle({ ...claims, ended: true })

export const release = (claims: Claims, told: boolean) =>
  settle({ ...claims, waiting: claims.waiting - 1, told: claims.told || told })
