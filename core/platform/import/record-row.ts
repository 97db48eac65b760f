/** Converts a row of a file to the request that creates the record (docs/rules/imports.md, "Customers, features and prices"). */
import type { z } from 'zod';
import { invalid } from '../../foundation/error.ts';
import { findIgnoredKeys } from '../../foundation/ignored-keys.ts';
import { DEPTH_MAX, isDeeperThan } from '../../foundation/json/depth.ts';
import { parseJson } from '../../foundation/json/parse.ts';
import { fieldPath, parseShape } from '../../foundation/shaped.ts';
import { checkTexts } from '../../foundation/texts.ts';
import type { ImportRow } from './row.ts';

/** Converts a row to a request; throws the fault with its field. */
export function parseRecordRow<Shape extends z.ZodObject>(shape: Shape, row: ImportRow): z.output<Shape> {
  if (typeof row.value !== 'object' || row.value === null || Array.isArray(row.value))
    throw invalid('row', 'must be a JSON object');
  checkDepth(row.value);
  checkTexts(row.value);
  const value = row.text === undefined ? readCells(shape, row.value as Record<string, unknown>) : row.value;
  const [unknown] = findIgnoredKeys(shape, value).filter(({ is_unknown }) => is_unknown);
  if (unknown) throw invalid(fieldPath(unknown.path), 'is no key of such a record');
  return parseShape(shape, value, 'row');
}

/** Applies the depth limit of a request body. */
function checkDepth(value: unknown): void {
  if (isDeeperThan(value, DEPTH_MAX)) throw invalid('row', `is nested deeper than ${DEPTH_MAX} levels`);
}

/** A cell is text. If its field accepts no text, the cell is read as JSON: `true`, `[{"up_to":10,"unit_amount":"0.1"}]`. */
function readCells(shape: z.ZodObject, cells: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(cells).map(([key, cell]) => {
    const field = shape.shape[key];
    if (typeof cell !== 'string' || !field || field.safeParse(cell).success) return [key, cell];
    const read = parseCellJson(cell);
    return [key, read === undefined || typeof read === 'string' ? cell : read];
  });
  return Object.fromEntries(entries);
}

/** Numbers stay texts: shapes accept these, and no digit is lost. */
function parseCellJson(cell: string): unknown {
  if (!/^\s*(?:[[{]|(?:true|false|null)\s*$)/.test(cell)) return undefined;
  try {
    const value = parseJson(cell);
    checkDepth(value);
    checkTexts(value);
    return value;
  } catch {
    return undefined;
  }
}
