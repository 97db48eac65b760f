import { quoteText } from '../../clickhouse/literals.ts';
import { type SqlToken, StatementError, tokenize } from '../../clickhouse/tokens.ts';

/**
 * Facts that the served engine needs about a statement before it runs. The engine's own multi-statement mode is never used: data in
 * the text of an insert would end at the first blank line, and the rest would run as SQL. So data go through a file, and only one
 * statement is accepted.
 */
export interface ParsedStatement {
  kind: 'read' | 'insert' | 'other';
  /** True for reads whose result the engine can stream. */
  streams?: boolean;
  /** The statement without a final semicolon. An insert with data ends before FORMAT. */
  text: string;
  /** Format of a read's result, or of an insert's data. */
  format?: string;
  /** Position of FORMAT in `text` of a read, so that a clause can be inserted before it. */
  format_span?: { start: number; end: number };
  /** Start of an insert's data in the original text. */
  data_start?: number;
  /** Position of `input('structure')` of an insert in `text`, and the quoted structure. */
  input?: { start: number; end: number; structure: string };
}

/** The text is read one character per byte, so positions are byte offsets and the data after an insert may be binary. */
export function parseStatement(sql: string): ParsedStatement {
  const tokens = tokenize(sql);
  const first = tokens.next();
  if (first.done) throw new StatementError(62, 'SYNTAX_ERROR', 'Syntax error: empty query');
  let opening: SqlToken | undefined = first.value;
  while (opening?.text === '(') opening = tokens.next().value as SqlToken | undefined;
  const word = opening?.word ?? '';
  if (word === 'INSERT') return parseInsert(sql, tokens);
  const statement = parseOther(sql, { kind: READS.has(word) ? 'read' : 'other', tokens: [...tokens] });
  return SELECTS.has(word) ? { ...statement, streams: true } : statement;
}

const SELECTS = new Set(['SELECT', 'WITH', 'FROM']);
const READS = new Set([...SELECTS, 'SHOW', 'DESC', 'DESCRIBE', 'EXISTS', 'EXPLAIN']);

/** Rewrites the insert to take its data from a file. */
export function insertFromFile(statement: ParsedStatement, { path, format }: { path: string; format: string }): string {
  const { text, input } = statement;
  if (!input) return `${text}\nSELECT * FROM file(${quoteText(path)}, ${quoteText(format)})`;
  const file = `file(${quoteText(path)}, ${quoteText(format)}, ${input.structure})`;
  return text.slice(0, input.start) + file + text.slice(input.end);
}

/** Rewrites the read to write its result to a file in that format. */
export function readIntoFile(statement: ParsedStatement, { path, format }: { path: string; format: string }): string {
  const { text, format_span } = statement;
  const clause = `\nINTO OUTFILE ${quoteText(path)} FORMAT ${format}\n`;
  return format_span ? text.slice(0, format_span.start) + clause + text.slice(format_span.end) : text + clause;
}

export function withoutFormat({ text, format_span }: ParsedStatement): string {
  return format_span ? `${text.slice(0, format_span.start)} ${text.slice(format_span.end)}` : text;
}

function parseOther(sql: string, { kind, tokens }: { kind: 'read' | 'other'; tokens: SqlToken[] }): ParsedStatement {
  const text = sql.slice(0, findStatementEnd(sql, tokens));
  const own = tokens.filter((token) => token.end <= text.length);
  if (own.some((token, at) => token.depth === 0 && token.word === 'INTO' && own[at + 1]?.word === 'OUTFILE')) {
    throw new StatementError(1, 'UNSUPPORTED_METHOD', 'INTO OUTFILE is not allowed');
  }
  const at = own.findLastIndex(
    (token, index) =>
      token.depth === 0 &&
      token.word === 'FORMAT' &&
      (own[index + 1]?.word ?? '') !== '' &&
      (index + 2 >= own.length || own[index + 2]?.word === 'SETTINGS'),
  );
  const [keyword, name] = [own[at], own[at + 1]];
  if (at < 0 || !keyword || !name) return { kind, text };
  return { kind, text, format: name.text, format_span: { start: keyword.start, end: name.end } };
}

function parseInsert(sql: string, tokens: Iterator<SqlToken>): ParsedStatement {
  const seen: SqlToken[] = [];
  let input: ParsedStatement['input'];
  let selects = false;
  const next = (): SqlToken | undefined => {
    const { value, done } = tokens.next();
    if (done) return undefined;
    seen.push(value);
    return value;
  };
  let token = skipTarget(next);
  for (; token; token = next()) {
    const top = token.depth === 0;
    if (token.text === ';') break;
    if (top && (token.word === 'SELECT' || token.word === 'WITH')) selects = true;
    if (token.word === 'INPUT') input = inputCall(token, next) ?? input;
    if (top && token.word === 'VALUES' && !selects) return valuesInsert(sql, { keyword: token, seen, next });
    if (top && token.word === 'FORMAT' && (!selects || input)) return dataInsert(sql, { keyword: token, next, input });
  }
  for (let rest = next(); rest; rest = next());
  const text = sql.slice(0, findStatementEnd(sql, seen));
  if (input) throw new StatementError(62, 'SYNTAX_ERROR', 'Syntax error: input() needs FORMAT and data');
  return { kind: 'insert', text };
}

/** Skips INSERT INTO [TABLE | FUNCTION] name[.name], because a table may be called "format". */
function skipTarget(next: () => SqlToken | undefined): SqlToken | undefined {
  let token = next();
  while (token && ['INTO', 'TABLE', 'FUNCTION'].includes(token.word)) token = next();
  token = next();
  while (token?.text === '.') {
    next();
    token = next();
  }
  return token;
}

function inputCall(keyword: SqlToken, next: () => SqlToken | undefined): ParsedStatement['input'] {
  if (next()?.text !== '(') return undefined;
  const structure = next();
  const close = next();
  if (!structure?.text.startsWith("'") || close?.text !== ')') return undefined;
  return { start: keyword.start, end: close.end, structure: structure.text };
}

interface DataInsert {
  keyword: SqlToken;
  next: () => SqlToken | undefined;
  input: ParsedStatement['input'];
}

function dataInsert(sql: string, { keyword, next, input }: DataInsert): ParsedStatement {
  const name = next();
  if (!name?.word) throw new StatementError(62, 'SYNTAX_ERROR', 'Syntax error: FORMAT needs the name of a format');
  // Blanks and one line end belong to the statement; every byte after that is data.
  const gap = /^[ \t]*(?:;[ \t]*)?(?:\r?\n)?/.exec(sql.slice(name.end, name.end + 4096))?.[0].length ?? 0;
  const text = sql.slice(0, keyword.start);
  return { kind: 'insert', text, format: name.text, data_start: name.end + gap, ...(input ? { input } : {}) };
}

interface ValuesInsert {
  keyword: SqlToken;
  seen: SqlToken[];
  next: () => SqlToken | undefined;
}

/**
 * Parses an insert with VALUES. Values in the text remain part of the statement, because they may contain bound parameters. Without them
 * the data are in the body.
 */
function valuesInsert(sql: string, { keyword, seen, next }: ValuesInsert): ParsedStatement {
  const already = seen.length;
  for (let token = next(); token; token = next());
  const end = findStatementEnd(sql, seen);
  if (seen.length > already && (seen[already]?.start ?? end) < end) return { kind: 'insert', text: sql.slice(0, end) };
  return { kind: 'insert', text: sql.slice(0, keyword.start), format: 'Values', data_start: sql.length };
}

/** Finds the end of the statement. Throws if another statement follows, which a real server rejects and the engine would run. */
function findStatementEnd(sql: string, tokens: SqlToken[]): number {
  const at = tokens.findIndex((token) => token.text === ';');
  const semicolon = tokens[at];
  if (!semicolon) return sql.length;
  if (tokens.slice(at).some((token) => token.text !== ';')) {
    throw new StatementError(62, 'SYNTAX_ERROR', 'Syntax error (Multi-statements are not allowed)');
  }
  return semicolon.start;
}
