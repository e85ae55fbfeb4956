/** Chinese for sentences of the server, in a file a topic. The keys are the templates of the program; a test compares them
 * with its source.
 *
 * `{}` is a part, which may be a sentence itself, and `{1}` the second part. `{!}` and `{1!}` are left as they are: names,
 * values and messages of programs, which might look like a sentence.
 */
import { CHECKS } from "./checks";
import { PROBLEMS } from "./problems";
import { REPORTS } from "./reports";
import { SCHEDULING } from "./scheduling";

export type Sentence = [en: string, zh: string];

const SENTENCES: Sentence[] = [...REPORTS, ...CHECKS, ...PROBLEMS, ...SCHEDULING];

interface Pattern {
  whole: RegExp;
  zh: string;
  weak: boolean;
}

/** Letters from which a template is a sentence. One with fewer, such as "{} and {}", would put a Chinese word between parts
 * that nobody knows: it is only for parts that can be translated. */
const WEAK = 9;

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const literal = (text: string) => text.replaceAll("{}", "").length;

/** Those with most words of their own come first: others match nearly everything. */
const PATTERNS: Pattern[] = [...SENTENCES]
  .sort(([one], [other]) => literal(other) - literal(one))
  .map(([en, zh]) => ({ whole: new RegExp(`^${en.split("{}").map(escaped).join("(.*?)")}$`, "s"), zh, weak: literal(en) < WEAK }));

const DEPTH = 6;
const ENGLISH = /[a-z]{3,} [a-z]{2,} [a-z]{2,}/;

/** Translate a sentence, or several, and their parts. What is unknown stays as it is. */
export function translate(text: string, depth = 0): string {
  if (!text.trim() || depth > DEPTH) return text;
  for (const { whole, zh, weak } of PATTERNS) {
    const match = whole.exec(text);
    if (!match) continue;
    const parts = match.slice(1);
    let next = 0;
    const said = zh.replace(/\{(\d?)(!?)\}/g, (_, place: string, verbatim: string) => {
      const part = parts[place === "" ? next++ : Number(place)] ?? "";
      return verbatim ? part : translate(part, depth + 1);
    });
    if (!(weak && ENGLISH.test(said))) return said;
  }
  const sentences = text.split(/(?<=[.;]) /);
  return sentences.length > 1 ? sentences.map((each) => translate(each, depth + 1)).join(" ") : text;
}
