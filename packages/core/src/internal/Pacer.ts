const slotMillis = 20
const slots = 8_192
/** below this many waiting polls each one comes exactly when it is due */
const crowd = 200
/** share of a pause by which a poll in a crowd may come late */
const spare = 0.05
/** how far above the average a slot may be filled before the next one is taken */
const slack = 2

/**
 * Gathers the polls of a crowd into slots of 20 ms, so that the process wakes at most 50 times a second for them, and
 * spreads what would come at once over the slots that follow. A pause is never shortened, and prolonged by a slot and
 * 5 % at most; while fewer than 200 polls wait it stays as it is.
 */
export class Pacer {
  readonly #filled = new Uint32Array(slots)
  #first = 0
  #waiting = 0

  /** How long to pause, in ms, from `now` on a clock that never jumps. */
  pause(now: number, millis: number): number {
    const current = Math.floor(now / slotMillis)
    const due = Math.ceil((now + millis) / slotMillis)
    if (due - current >= slots) return millis
    this.#advance(current)
    const crowded = this.#waiting >= crowd
    const slot = crowded ? this.#roomy(due, millis) : due
    this.#filled[slot % slots] = this.#filledAt(slot) + 1
    this.#waiting += 1
    return crowded ? Math.ceil(slot * slotMillis - now) : millis
  }

  #filledAt(slot: number): number {
    return this.#filled[slot % slots] ?? 0
  }

  /** The slot that has room, or the last one that is not too late. */
  #roomy(due: number, millis: number): number {
    const room = Math.ceil(slack * this.#waiting * Math.min(1, slotMillis / millis))
    const last = due + Math.floor((millis * spare) / slotMillis)
    let slot = due
    while (slot < last && this.#filledAt(slot) >= room) slot += 1
    return slot
  }

  #advance(current: number): void {
    const passed = Math.min(current, this.#first + slots)
    for (let slot = this.#first; slot < passed; slot += 1) {
      this.#waiting -= this.#filledAt(slot)
      this.#filled[slot % slots] = 0
    }
    this.#first = Math.max(this.#first, current)
  }
}
