/** Quotes a text as one word of a shell. Ids and names are texts of others, which a reader pastes into a terminal. */
export function quoteShell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
