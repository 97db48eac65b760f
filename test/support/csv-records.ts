/** The records of a CSV by the names of its columns, read by RFC 4180 and not by the library that wrote it. */
export function csvRecords(text: string): Record<string, string>[] {
  const [head, ...lines] = recordsOf(text.replace(/^\ufeff/, ''));
  return lines.map((cells) => Object.fromEntries(head!.map((name, column) => [name, cells[column]!])));
}

/** A cell, in quotes or not, and what ends it: a comma, the end of its line, or that of the text. */
const CELL = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/y;

/** Cell by cell: to look for each end of a line whether the quotes behind it are in pairs takes the square of a file's length. */
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
