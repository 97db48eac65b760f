/** Parses a CSV to records by column name. It follows RFC 4180 and does not use the library that wrote the file. */
export function csvRecords(text: string): Record<string, string>[] {
  const [head, ...lines] = recordsOf(text.replace(/^\ufeff/, ''));
  return lines.map((cells) => Object.fromEntries(head!.map((name, column) => [name, cells[column]!])));
}

/** A cell, quoted or not, and its end: a comma, the end of the line, or the end of the text. */
const CELL = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/y;

/** Parses cell by cell. A search for line ends that checks the quotes after each would take quadratic time. */
function recordsOf(text: string): string[][] {
  const records: string[][] = [];
  let cells: string[] = [];
  CELL.lastIndex = 0;
  while (CELL.lastIndex < text.length) {
    const at = CELL.lastIndex;
    const cell = CELL.exec(text);
    if (!cell) throw new Error(`no cell of a CSV at ${at}: ${text.slice(at, at + 80)}`);
    cells.push(cell[1]?.replaceAll('""', '"') ?? cell[2]!);
    if (cell[3] === ',') continue;
    records.push(cells);
    cells = [];
  }
  return records;
}
