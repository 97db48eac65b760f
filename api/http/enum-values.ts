/**
 * Fixed values of a column (statuses, types, periods). A condition names them in any case; an unknown value is refused, because it would
 * never match (docs/rules/records.md).
 */
import { z } from 'zod';
import { invalid } from '../../core/foundation/error.ts';

/** Values in the spelling of the record; null for a column of free text. */
export function listEnumValues(field: z.core.$ZodType | undefined): readonly string[] | null {
  if (field instanceof z.ZodEnum) return field.options.map(String);
  if (field instanceof z.ZodLiteral) return [...field.values].map(String);
  if (field instanceof z.ZodPipe) return listEnumValues(field.out);
  if (field instanceof z.ZodNullable || field instanceof z.ZodOptional || field instanceof z.ZodDefault)
    return listEnumValues(field.unwrap());
  return null;
}

export function normalizeEnumValue(
  value: string,
  { field, words: values }: { field: string; words: readonly string[] },
): string {
  const word = values.find((one) => one.toLowerCase() === value.toLowerCase());
  if (word === undefined) throw invalid('filters', `${field} is one of ${values.join(', ')}, and never ${value}`);
  return word;
}
