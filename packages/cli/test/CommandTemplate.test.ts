import { assert, describe, it } from "@effect/vitest"
import * as Either from "effect/Either"
import { fill, parseTemplate } from "../src/CommandTemplate.js"

const words = (source: string) => Either.getOrThrow(parseTemplate(source)).words
const refusal = (source: string) => Either.getOrThrow(Either.flip(parseTemplate(source)))

describe("parseTemplate", () => {
  const good: ReadonlyArray<readonly [source: string, words: ReadonlyArray<string>]> = [
    ["echo {}", ["echo", "{}"]],
    ["codex queue --thread abc --message {}", ["codex", "queue", "--thread", "abc", "--message", "{}"]],
    ["  x --message='{}'  ", ["x", "--message={}"]],
    [`notify-send 'Job ended' "it's {}"`, ["notify-send", "Job ended", "it's {}"]],
    [`sh -c 'printf "%s" "$1" >> a; b | c' _ {}`, ["sh", "-c", `printf "%s" "$1" >> a; b | c`, "_", "{}"]],
    [`'my program' a\\ b "" {}`, ["my program", "a b", "", "{}"]],
    ["curl -d {} http://127.0.0.1/", ["curl", "-d", "{}", "http://127.0.0.1/"]],
    ["node notify.mjs {}", ["node", "notify.mjs", "{}"]]
  ]
  for (const [source, expected] of good) it(`splits ${source}`, () => assert.deepStrictEqual(words(source), expected))

  const bad: ReadonlyArray<readonly [source: string, why: string]> = [
    ["", "is empty"],
    ["   ", "is empty"],
    ["echo", "exactly one {}, where the notice goes, and has 0"],
    ["echo {} {}", "has 2"],
    ["echo {}{}", "has 2"],
    ["{} x", "as its program"],
    ["echo 'x {}", "not closed"],
    [`echo "x {}`, "not closed"],
    ["echo {} | cat", `"|"`],
    ["echo {} > f", `">"`],
    ["echo {} && x", `"&&"`],
    ["echo {}; x", `";"`],
    ["echo $HOME {}", `"$HOME"`],
    [`echo "$1" {}`, `"$1"`],
    ["echo $(x) {}", "outside single quotes"],
    ["echo `x` {}", "backtick"],
    ["echo \"`x`\" {}", "backtick"],
    ["ls *.txt {}", "*.txt"],
    ["echo # {}", `"#"`],
    ["echo ${X {}", "cannot be split"],
    ["echo {}\nrm x", "several lines"],
    ["sh -c {}", "as code"],
    ["sh -c 'echo {}'", "as code"],
    ["bash -lc 'echo {}'", "as code"],
    ["/bin/bash -c -- 'echo {}'", "as code"],
    ["env A=1 timeout 5 zsh -c '{}'", "as code"],
    ["env -S 'sh -c {}'", "as code"],
    ["node -e 'console.log({})'", "as code"],
    ["python3 -c 'print({})'", "as code"],
    ["perl -ne {}", "as code"],
    ["powershell -Command {}", "as code"],
    ["cmd.exe /c {}", "as code"],
    ["ssh host notify {}", "as code"],
    ["su me -c {}", "as code"]
  ]
  for (const [source, why] of bad) {
    it(`refuses ${JSON.stringify(source)}`, () => assert.include(refusal(source), why))
  }

  it("names the form that works where a shell is needed", () => {
    const advised = /sh -c .* _ \{\}/.exec(refusal("echo {} | cat"))?.[0] ?? ""
    assert.strictEqual(words(advised).length, 5)
  })

  it("puts any notice into its one word, and leaves the others alone", () => {
    const template = Either.getOrThrow(parseTemplate("x --message={} {}x".replace(" {}x", "")))
    const notice = "'\"`$(rm) $& $1 {} \n\\ \0"
    assert.deepStrictEqual(fill(template, notice), ["x", `--message=${notice.replace("\0", "\uFFFD")}`])
  })
})
