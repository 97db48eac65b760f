/**
 * Reads worked examples written as markdown: `## area`, then per operation a line "op `name` — common: `{…}`", lines
 * "- @alias = `…`", and a table with one example per row. A column "→ x" holds an expected result, `given` an object of
 * arguments, `expect` an object of results, `tol` an absolute tolerance; `id` and `note` are for the reader. The notes of
 * `own/` say by which sum a result was found: it follows from a rule and is never taken from what the code answers.
 */
export type Example = {
  readonly area: string;
  readonly op: string;
  readonly id: string;
  readonly given: Readonly<Record<string, unknown>>;
  readonly expected: Readonly<Record<string, unknown>>;
  readonly tolerance: string | undefined;
};

type Section = {
  area: string;
  op: string;
  common: Record<string, unknown>;
  aliases: Map<string, unknown>;
  columns: string[] | undefined;
};

export function parseExamples(markdown: string): Example[] {
  const examples: Example[] = [];
  let section = newSection('');
  for (const line of markdown.split('\n')) {
    if (line.startsWith('## ')) section = newSection(line.slice(3).trim());
    else if (line.startsWith('op `')) section = { ...section, ...parseOp(line), columns: undefined };
    else if (line.startsWith('- @')) parseAlias(line, section.aliases);
    else if (!line.startsWith('|')) section.columns = undefined;
    else if (section.op !== '') {
      const cells = splitRow(line);
      if (section.columns === undefined) section.columns = cells;
      else if (!/^[\s:-]+$/.test(cells.join(''))) examples.push(parseRow(cells, section));
    }
  }
  return examples;
}

function newSection(area: string): Section {
  return { area, op: '', common: {}, aliases: new Map(), columns: undefined };
}

function parseOp(line: string): { op: string; common: Record<string, unknown> } {
  const parts = /^op `([^`]+)`(?:.*common: `(.*)`)?\s*$/.exec(line);
  if (parts === null) throw new Error(`not an operation line: ${line}`);
  return { op: parts[1]!, common: parts[2] === undefined ? {} : JSON.parse(parts[2]) };
}

function parseAlias(line: string, aliases: Map<string, unknown>): void {
  const parts = /^- (@\w+) = `(.*)`\s*$/.exec(line);
  if (parts === null) throw new Error(`not an alias line: ${line}`);
  aliases.set(parts[1]!, JSON.parse(parts[2]!));
}

/** Cells between bars; a bar inside backticks belongs to its cell. */
function splitRow(line: string): string[] {
  const cells: string[] = [];
  let cell = '';
  let quoted = false;
  for (const character of line.trim().slice(1)) {
    if (character === '`') quoted = !quoted;
    if (character === '|' && !quoted) {
      cells.push(cell.trim());
      cell = '';
    } else cell += character;
  }
  return cells;
}

function parseRow(cells: string[], section: Section): Example {
  const given: Record<string, unknown> = { ...section.common };
  const expected: Record<string, unknown> = {};
  let id = '';
  let tolerance: string | undefined;
  for (const [index, column] of (section.columns ?? []).entries()) {
    const value = parseCell(cells[index] ?? '', section.aliases);
    if (column === 'id') id = String(value);
    else if (column === 'note' || value === undefined) continue;
    else if (column === 'tol') tolerance = String(value);
    else if (column === 'given') Object.assign(given, value);
    else if (column === '→ expect') Object.assign(expected, value);
    else if (column.startsWith('→')) expected[column.slice(1).trim()] = value;
    else given[column] = value;
  }
  return { area: section.area, op: section.op, id, given, expected, tolerance };
}

/** JSON in backticks, an alias, null, true, false, or plain text: numbers stay text, so that they stay exact. */
function parseCell(cell: string, aliases: ReadonlyMap<string, unknown>): unknown {
  if (cell === '') return undefined;
  if (cell.startsWith('`') && cell.endsWith('`')) return JSON.parse(cell.slice(1, -1));
  if (cell.startsWith('@')) {
    if (!aliases.has(cell)) throw new Error(`unknown alias ${cell}`);
    return aliases.get(cell);
  }
  const words: Record<string, unknown> = { null: null, true: true, false: false };
  return cell in words ? words[cell] : cell;
}
