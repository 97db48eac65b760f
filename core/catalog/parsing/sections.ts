/** Splits a description into plans: "Starter: $10 per month. Pro: …", or one plan without a name. */
import { readFacts } from './facts.ts';

export type Section = {
  /** Null if the description does not name the plan. */
  readonly name: string | null;
  /** Sentences of the section. They are read separately, so that a phrase never continues in the next sentence. */
  readonly sentences: string[];
};

const NAME = String.raw`(\p{Lu}[\p{L}\p{N}&+]*(?:[ -]\p{Lu}[\p{L}\p{N}&+]*){0,2})`;
const LEAD = String.raw`^[\s>*#•-]*`;
const MONEY = String.raw`(?:[$€£¥₹]|(?:US|CA|AU|C|A)\$|\d|(?:USD|EUR|GBP)\b)`;

const HEADERS: readonly RegExp[] = [
  // For "Pro plan: …", "The Pro plan costs …", "Our Pro tier has …".
  new RegExp(
    String.raw`${LEAD}(?:(?:[Tt]he|[Oo]ur|[Aa]n?)\s+)?${NAME}\s+(?:[Pp]lan|[Tt]ier|[Ee]dition|[Pp]ackage)\b\s*(?::|-|–|—|\b(?:costs?|is priced at|is|has|comes with|starts at)\b)?`,
    'u',
  ),
  // For "Pro: $29 …", "Free: …".
  new RegExp(String.raw`${LEAD}${NAME}\s*(?::|–|—|\s-\s)\s*(?=${MONEY}|free\b|contact\b|custom\b)`, 'u'),
  // For "Pro costs $29", "Pro is $29".
  new RegExp(String.raw`${LEAD}${NAME}\s+(?:costs?|is)\s+(?=${MONEY}|free\b)`, 'u'),
];

/** First words of headings that are not names of plans, as in "Setup fee: $99". */
const NOT_NAMES =
  /^(?:prices?|pricing|base|platform|fees?|usage|overages?|trial|features?|includes?|tiers?|notes?|setup|plans?|all|every|each|first|next|up|subscription|monthly|annual|yearly|the|our|a|an|volume|storage)\b/i;
export function splitSections(text: string): Section[] {
  const shared: Section = { name: null, sentences: [] };
  const named: Section[] = [];
  for (const sentence of splitSentences(text)) {
    const header = parseHeader(sentence);
    if (header) named.push({ name: header.name, sentences: [header.rest] });
    else if (isAboutAll(sentence)) shared.sentences.push(sentence);
    else (named.at(-1) ?? shared).sentences.push(sentence);
  }
  if (named.length === 0) return [shared];
  // Sentences about all plans, or before the first plan, apply to each plan.
  return named.map(({ name, sentences }) => ({ name, sentences: [...sentences, ...shared.sentences] }));
}

const isAboutAll = (sentence: string) => /^\s*(?:all|every|each)\s+plans?\b/i.test(sentence);

function splitSentences(text: string): string[] {
  return text
    .split(/\n|(?<=[.;!?])\s+|[.;!?]+$/u)
    .map((sentence) => sentence.replace(/[.;!?]+$/u, '').trim())
    .filter((sentence) => sentence !== '');
}

function parseHeader(sentence: string): { name: string; rest: string } | undefined {
  for (const [index, header] of HEADERS.entries()) {
    const match = header.exec(sentence);
    if (match === null || NOT_NAMES.test(match[1]!) || !/^\p{Lu}/u.test(match[1]!)) continue;
    const rest = sentence.slice(match[0].length);
    if (index > 0 && isPricedByPiece(rest)) continue;
    return { name: match[1]!, rest };
  }
  return undefined;
}

/** Whether the text after a heading is a usage price, as in "Storage: $0.10 per GB". The heading is then not the name of a plan. */
function isPricedByPiece(rest: string): boolean {
  const kind = readFacts(rest).facts[0]?.kind;
  return kind === 'usage' || kind === 'rate';
}
