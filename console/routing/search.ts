/** Reads the search parameters of a URL. What is not understood is left out, so that an old link still opens its page. */
export type SearchInput = Record<string, unknown>;

/** Reads a text. The router parses a text of digits as a number, which is turned back. */
export function readText(input: SearchInput, key: string): string | undefined {
  const value = input[key];
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export function readOneOf<Value extends string>(
  input: SearchInput,
  key: string,
  values: readonly Value[],
): Value | undefined {
  const text = readText(input, key);
  return values.find((value) => value === text);
}

/** A larger number, such as one of a link by somebody else, could make the page read without end. */
const COUNT_MAX = 600;

/** Reads a number of rows: a whole number above 0, at most COUNT_MAX. */
export function readCount(input: SearchInput, key: string): number | undefined {
  const text = readText(input, key);
  return text !== undefined && /^[1-9]\d{0,5}$/.test(text) ? Math.min(Number(text), COUNT_MAX) : undefined;
}

export function readTexts(input: SearchInput, key: string): string[] | undefined {
  const value = input[key];
  if (!Array.isArray(value)) return undefined;
  const texts = value.filter((each): each is string => typeof each === 'string' && each !== '');
  return texts.length > 0 ? texts : undefined;
}

/** A search object without the keys that have no value, so that they do not stand in the URL. */
export function compact<Search extends object>(search: Search): Search {
  return Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined)) as Search;
}
