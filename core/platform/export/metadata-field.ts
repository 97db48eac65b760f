/** A column filled from the metadata of the customer or wallet of a record (docs/rules/exports.md, "Columns of your own"). */
import { z } from 'zod';
import { invalid } from '../../foundation/error.ts';
import { anyCase, optionalKey, requiredKey } from '../../foundation/record.ts';

const METADATA_ENTITIES = ['customer', 'wallet'] as const;
export type MetadataEntity = (typeof METADATA_ENTITIES)[number];

export const metadataField = z.object({
  entity_type: anyCase(METADATA_ENTITIES).meta({
    description:
      'Entity whose metadata fills the column: customer or wallet. An entity that the records do not have is refused.',
  }),
  field_key: requiredKey.meta({ description: 'Key in the metadata.' }),
  column_name: optionalKey
    .default(null)
    .meta({ description: 'Name of the column. Default: `field_key`. A name that another column has is refused.' }),
});
export type MetadataField = z.output<typeof metadataField>;

export const METADATA_FIELDS_MAX = 50;

/** Throws if the records have no such entity, or if two columns would have the same name. */
export function checkMetadataFields(
  fields: readonly MetadataField[],
  { about, names, field }: { about: readonly MetadataEntity[]; names: readonly string[]; field: string },
): void {
  const taken = new Set(names);
  for (const [index, { entity_type, ...rest }] of fields.entries()) {
    const at = `${field}.${index}`;
    if (!about.includes(entity_type))
      throw invalid(`${at}.entity_type`, `these records are not about a ${entity_type}`, { allowed: about });
    const name = toColumnName(rest);
    if (taken.has(name)) throw invalid(`${at}.column_name`, `there is a column ${name} already`);
    taken.add(name);
  }
}

export function toColumnName({ column_name, field_key }: Pick<MetadataField, 'column_name' | 'field_key'>): string {
  return column_name ?? field_key;
}
