import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** ms on a clock that never jumps, for durations and deadlines; the wall clock is for showing only. */
export const monotonicOf = (clock: Clock.Clock): number => Number(clock.unsafeCurrentTimeNanos() / 1_000n) / 1_000

/** `monotonicOf` the clock that is in use. */
export const monotonic: Effect.Effect<number> = Clock.clockWith((clock) => Effect.sync(() => monotonicOf(clock)))

/** The longest delay that a platform timer keeps (2^31 - 1 ms); a longer one would fire at once. */
export const longestDelay = 2 ** 31 - 1
