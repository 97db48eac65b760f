/**
 * An import mapping states how the columns of a file become fields of a record: its delimiter, encoding, numbers and dates, and the source
 * of each field (docs/rules/imports.md, "Mappings").
 */
import { z } from 'zod';
import { anyCase, baseFields, keyText, requiredKey, toEnumValues } from '../../../foundation/record.ts';
import { isTimezone } from '../../../foundation/time/zone.ts';

const IMPORTED_ENTITIES = ['EVENTS', 'CUSTOMERS', 'FEATURES', 'PRICES'] as const;
export type ImportedEntityType = (typeof IMPORTED_ENTITIES)[number];

/** Delimiters by their names. */
export const DELIMITERS = { COMMA: ',', SEMICOLON: ';', TAB: '\t', PIPE: '|' } as const;
const DECIMAL_SEPARATORS = ['POINT', 'COMMA'] as const;
export type DecimalSeparator = (typeof DECIMAL_SEPARATORS)[number];
const DATE_FORMATS = ['YEAR_FIRST', 'MONTH_FIRST', 'DAY_FIRST', 'UNIX_SECONDS', 'UNIX_MILLISECONDS'] as const;
export type DateFormat = (typeof DATE_FORMATS)[number];
/** Encodings of a file. */
export const ENCODINGS = ['UTF-8', 'UTF-16LE', 'UTF-16BE', 'WINDOWS-1252'] as const;
export type FileEncoding = (typeof ENCODINGS)[number];
export const PRESET_NAMES = ['FOCUS', 'AWS_CUR', 'AWS_DATA_EXPORTS', 'AZURE_COST', 'LITELLM'] as const;
export type PresetName = (typeof PRESET_NAMES)[number];

const COLUMNS_PER_FIELD_MAX = 20;
const FIELDS_MAX = 1_000;

const mappedField = z.object({
  field: requiredKey.meta({
    description: 'Field of the record, such as `external_customer_id`, or an entry of a map: `properties.cost`.',
    example: 'external_customer_id',
  }),
  columns: z
    .array(keyText.min(1))
    .max(COLUMNS_PER_FIELD_MAX)
    .default([])
    .meta({
      description:
        'Columns of the file, in any case. `Tags.team` is the key `team` of the JSON object in the column `Tags`. Empty for a constant.',
      example: ['SubAccountId'],
    }),
  combine: anyCase(['FIRST', 'JOIN'])
    .default('FIRST')
    .meta({ description: 'FIRST takes the first cell that is not empty; JOIN joins all of them by a blank.' }),
  value: z
    .string()
    .max(1_024)
    .nullable()
    .default(null)
    .meta({ description: 'Constant without columns; otherwise the value if all of the cells are empty.' }),
  type: anyCase(['TEXT', 'NUMBER', 'INSTANT']).nullable().default(null).meta({
    description: 'Refuses a row whose cell is no number or instant. Default: INSTANT for `timestamp`, else TEXT.',
  }),
  is_optional: z
    .boolean()
    .default(false)
    .meta({ description: 'Whether a file may lack all of the columns. Without it such a file is refused.' }),
});
export type MappedField = z.output<typeof mappedField>;

const terms = z.object({
  delimiter: anyCase(toEnumValues(DELIMITERS)).meta({ description: 'Character between the columns. Default COMMA.' }),
  decimal_separator: anyCase(DECIMAL_SEPARATORS).meta({
    description: 'Sign before the fraction of a number; the other sign may group its digits. Default POINT.',
  }),
  date_format: anyCase(DATE_FORMATS).meta({
    description:
      'Order of the parts of a date such as 09/10/2026. A date that begins with its year is always read. Default YEAR_FIRST.',
  }),
  time_zone: z
    .string()
    .refine(isTimezone, { error: 'must be an IANA timezone such as Europe/Berlin' })
    .meta({ description: 'IANA timezone of instants without an offset. Default UTC.', example: 'UTC' }),
  encoding: anyCase(ENCODINGS)
    .nullable()
    .meta({ description: 'Encoding of the file. Default null: it is recognized.' }),
  other_columns: anyCase(['REFUSE', 'PROPERTIES', 'IGNORE']).meta({
    description:
      'Use of columns that no field names. PROPERTIES: each is a property of the event. REFUSE: the file is refused. Default REFUSE.',
  }),
  property_names: anyCase(['AS_COLUMN', 'SNAKE_CASE']).meta({
    description:
      'Names of those properties: that of the column, or `line_item_unblended_cost` for `lineItem/UnblendedCost`. Default AS_COLUMN.',
  }),
  fields: z.array(mappedField).max(FIELDS_MAX).meta({ description: 'Source of each field.' }),
});
export type ImportMappingTerms = z.output<typeof terms>;

export const DEFAULT_TERMS: ImportMappingTerms = {
  delimiter: 'COMMA',
  decimal_separator: 'POINT',
  date_format: 'YEAR_FIRST',
  time_zone: 'UTC',
  encoding: null,
  other_columns: 'REFUSE',
  property_names: 'AS_COLUMN',
  fields: [],
};

const identityFields = z.object({
  name: requiredKey.meta({ description: 'Name by which imports use the mapping; unique among published mappings.' }),
  entity_type: anyCase(IMPORTED_ENTITIES).meta({ description: 'Kind of the imported records.' }),
  preset: anyCase(PRESET_NAMES)
    .nullable()
    .meta({ description: 'Preset whose terms apply where the request has none; null without one.' }),
});

/** Fields of a request. Absent terms are those of the preset, else the defaults. */
export const importMappingFields = identityFields.extend({
  entity_type: identityFields.shape.entity_type.default('EVENTS'),
  preset: identityFields.shape.preset.default(null),
  ...terms.partial().shape,
});
export type ImportMappingFields = z.output<typeof importMappingFields>;

/** Fields of a change. Sent `fields` replace all of them. */
export const importMappingChanges = z.object({
  name: identityFields.shape.name.optional(),
  ...terms.partial().shape,
  fields: terms.shape.fields.optional().meta({ description: 'Source of each field; replaces all of them.' }),
});
export type ImportMappingChanges = z.output<typeof importMappingChanges>;

export const importMappingShape = identityFields.extend({ id: z.string(), ...terms.shape, ...baseFields });
export type ImportMapping = z.output<typeof importMappingShape>;

export const presetShape = z.object({
  name: z.enum(PRESET_NAMES).meta({ description: 'Name of the preset.' }),
  description: z.string().meta({ description: 'Files that the preset reads.' }),
  entity_type: identityFields.shape.entity_type,
  ...terms.shape,
});
export type ImportPreset = z.output<typeof presetShape>;

/** Name and terms of the mapping of an import, fixed when the import was accepted. */
export type UsedMapping = ImportMappingTerms & Pick<ImportMapping, 'name' | 'entity_type'>;
