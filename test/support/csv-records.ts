/** The records of a CSV by the names of its columns, read by RFC 4180 and not by the library that wrote it. */
export function csvRecords(text: string): Record<string, string>[] {
  const [head, ...lines] = text
    .replace(/^\ufeff/, '')
    .split(/\r\n(?=(?:[^"]*"[^"]*")*[^"]*$)/)
    .filter((line) => line !== '')
    .map(cellsOf);
  return lines.map((cells) => Object.fromEntries(head!.map((name, column) => [name, cells[column]!])));
}

function cellsOf(line: string): string[] {
  return line
    .split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/)
    .map((cell) => (cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell));
}
