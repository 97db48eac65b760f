/**
 * Parses tiers that a spreadsheet puts on the clipboard: a row a line, columns by tabs. Columns are the bound and the price, with a flat
 * fee after them or the start of the tier before them. A first row without numbers is a header.
 */
import { parseNumber } from '../../figures/parse.ts';
import type { Language } from '../../texts/texts.ts';
import { OPEN_TIER, type TierDraft } from './price-draft.ts';

/** How a point or comma is read that could be either a mark of groups or of decimals. */
export type PointReading = 'group' | 'decimal';
export type ParsedTiers = {
  readonly tiers: readonly TierDraft[];
  /** Lines that are not understood, by their number from 1. */
  readonly faults: readonly number[];
  /** Whether a price has two readings, so that the reader must choose. */
  readonly isAmbiguous: boolean;
};

type TierColumns = { readonly up_to: number; readonly unit_amount: number; readonly flat_amount: number | null };

export function isTable(text: string): boolean {
  return /[\t\n\r]/.test(text.trim());
}

export function parseTiers(text: string, language: Language, point?: PointReading): ParsedTiers {
  const lines = text
    .split(/\r\n|\r|\n/)
    .map((line, at) => ({ number: at + 1, cells: splitCells(line) }))
    .filter(({ cells }) => cells.some((cell) => cell !== ''));
  const rows = lines[0] && isHeader(lines[0].cells, language) ? lines.slice(1) : lines;
  const columns = findColumns(
    rows.map(({ cells }) => cells),
    language,
  );
  const read = rows.map(({ number, cells }, at) => ({ number, ...readTier(cells, at === rows.length - 1) }));
  const tiers = read.flatMap(({ tier }) => (tier ? [tier] : []));
  const last = tiers.at(-1);
  return {
    // The last tier is open: where the table has a bound in each row, an empty tier follows.
    tiers: last && last.up_to !== '' ? [...tiers, OPEN_TIER] : tiers,
    faults: read.filter(({ tier }) => tier === null).map(({ number }) => number),
    isAmbiguous: read.some(({ isAmbiguous }) => isAmbiguous),
  };

  function readTier(cells: readonly string[], isLast: boolean): { tier: TierDraft | null; isAmbiguous: boolean } {
    const bound = readCell(cells[columns.up_to] ?? '', language, 'group');
    const unit = readCell(cells[columns.unit_amount] ?? '', language, point);
    const flat = readCell(columns.flat_amount === null ? '' : (cells[columns.flat_amount] ?? ''), language, point);
    const isOpen = isLast && !bound.value;
    const isAmbiguous = unit.isAmbiguous || flat.isAmbiguous;
    if (!unit.value || flat.value === null || (!bound.value && !isOpen)) return { tier: null, isAmbiguous };
    return { tier: { up_to: bound.value ?? '', unit_amount: unit.value, flat_amount: flat.value }, isAmbiguous };
  }
}

function splitCells(line: string): string[] {
  const parts = line.includes('\t') ? line.split('\t') : line.split(/ {2,}|;/);
  return parts.map((cell) => cell.trim());
}

type ReadCell = { readonly value: string | null; readonly isAmbiguous: boolean };

/** A number of a cell; '' of an empty one, null of a text. Symbols and codes of currencies are ignored. */
function readCell(cell: string, language: Language, point: PointReading | undefined): ReadCell {
  const bare = cell.replaceAll(/\p{Sc}|\b[A-Z]{3}\b/gu, '').trim();
  if (cell === '' || /^[-–—]$/.test(bare)) return { value: '', isAmbiguous: false };
  const parsed = parseNumber(bare, language);
  if (parsed.kind === 'number') return { value: parsed.value, isAmbiguous: false };
  if (parsed.kind !== 'ambiguous') return { value: null, isAmbiguous: false };
  const [grouped, decimal] = parsed.readings;
  return { value: point === 'decimal' ? decimal : grouped, isAmbiguous: point === undefined };
}

function isHeader(cells: readonly string[], language: Language): boolean {
  return cells.every((cell) => cell === '' || parseNumber(cell, language).kind === 'invalid');
}

/** Three columns are bound, price and fee, or start, bound and price: a start is the bound of the row before. */
function findColumns(rows: readonly (readonly string[])[], language: Language): TierColumns {
  const width = Math.max(0, ...rows.map((cells) => cells.findLastIndex((cell) => cell !== '') + 1));
  if (width >= 4) return { up_to: 1, unit_amount: 2, flat_amount: 3 };
  if (width === 3 && hasStarts(rows, language)) return { up_to: 1, unit_amount: 2, flat_amount: null };
  return { up_to: 0, unit_amount: 1, flat_amount: width === 3 ? 2 : null };
}

function hasStarts(rows: readonly (readonly string[])[], language: Language): boolean {
  const bare = (row: number, column: number) => readCell(rows[row]?.[column] ?? '', language, 'group').value;
  if (rows.length === 1) return bare(0, 0) === '0';
  const bound = bare(0, 1);
  const start = bare(1, 0);
  return (
    Boolean(bound && start) && (start === bound || BigInt(start!.split('.')[0]!) === BigInt(bound!.split('.')[0]!) + 1n)
  );
}
