/** Splits ClickHouse SQL into tokens, so that semicolons and keywords inside quoted text and comments are not mistaken for syntax. */
export interface SqlToken {
  /** The token as written, including quotes. */
  text: string;
  /** The word in capitals if the token is a bare word, else empty. */
  word: string;
  start: number;
  end: number;
  /** Nesting depth: the number of open brackets of any kind around the token. */
  depth: number;
}

const SPACE = /\s+/y;
const COMMENT = /--[^\n]*|#[ !][^\n]*|\/\*[\s\S]*?\*\//y;
const QUOTED = /'[^'\\]*(?:\\[\s\S][^'\\]*)*'|"[^"\\]*(?:\\[\s\S][^"\\]*)*"|`[^`\\]*(?:\\[\s\S][^`\\]*)*`/y;
const HEREDOC = /\$(\w*)\$[\s\S]*?\$\1\$/y;
const WORD = /[A-Za-z_][A-Za-z0-9_]*/y;
const NUMBER = /[0-9][A-Za-z0-9_.]*/y;

export function* tokenize(sql: string): Generator<SqlToken, undefined> {
  let position = 0;
  let depth = 0;
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = position;
    return pattern.exec(sql)?.[0];
  };
  while (position < sql.length) {
    const blank = take(SPACE) ?? take(COMMENT);
    if (blank !== undefined) {
      position += blank.length;
      continue;
    }
    const word = take(WORD);
    const text = word ?? take(NUMBER) ?? take(QUOTED) ?? take(HEREDOC) ?? (sql[position] as string);
    if (`'"\``.includes(text) || sql.startsWith('/*', position)) {
      throw new StatementError(
        62,
        'SYNTAX_ERROR',
        `Syntax error: what opens at position ${position + 1} is not closed`,
      );
    }
    if (text === ')' || text === ']' || text === '}') depth -= 1;
    yield { text, word: word?.toUpperCase() ?? '', start: position, end: position + text.length, depth };
    if (text === '(' || text === '[' || text === '{') depth += 1;
    position += text.length;
  }
  return undefined;
}

/** Splits a file into its statements: each ends with a semicolon, which the last one may omit. */
export function splitStatements(sql: string): string[] {
  const statements: string[] = [];
  let start = 0;
  let empty = true;
  for (const { text, end } of tokenize(sql)) {
    if (text !== ';') {
      empty = false;
      continue;
    }
    if (!empty) statements.push(sql.slice(start, end - 1).trim());
    start = end;
    empty = true;
  }
  return empty ? statements : [...statements, sql.slice(start).trim()];
}

/** An error in ClickHouse's form: the answer contains its code and type name. */
export class StatementError extends Error {
  readonly code: number;
  readonly type: string;

  constructor(code: number, type: string, message: string) {
    super(message);
    this.code = code;
    this.type = type;
  }
}
