/** Completes and checks a mapping (docs/rules/imports.md, "Mappings"). */
import { invalid } from '../../../foundation/error.ts';
import { REQUIRED_EVENT_FIELDS, splitField } from './mapped-row.ts';
import { findPreset } from './presets.ts';
import {
  DEFAULT_TERMS,
  type ImportedEntityType,
  type ImportMappingFields,
  type ImportMappingTerms,
  type MappedField,
} from './record.ts';

type DefinedMapping = ImportMappingTerms & Pick<ImportMappingFields, 'name' | 'entity_type' | 'preset'>;

/**
 * Takes the terms that the request omits from its preset. A field of the request replaces that of the preset; one without columns and value
 * removes it.
 */
export function defineImportMapping(
  { name, entity_type, preset, ...terms }: ImportMappingFields,
  known: readonly string[],
): DefinedMapping {
  if (findPreset(name)) throw invalid('name', 'is the name of a preset');
  const base = preset === null ? undefined : findPreset(preset);
  if (base && entity_type !== base.entity_type)
    throw invalid('preset', `makes ${base.entity_type}, not ${entity_type}`);
  const fields = terms.fields ?? [];
  const inherited = base?.fields.filter(({ field }) => !fields.some((one) => one.field === field)) ?? [];
  checkFields(fields, { entity_type, known, hasPreset: base !== undefined });
  checkNesting(fields, inherited);
  const defined = {
    ...(base ? toTerms(base) : DEFAULT_TERMS),
    ...toTerms(terms),
    fields: [...inherited, ...fields.filter(hasSource)],
  };
  if (defined.other_columns === 'PROPERTIES' && entity_type !== 'EVENTS')
    throw invalid('other_columns', 'can be PROPERTIES for EVENTS alone');
  if (defined.other_columns === 'PROPERTIES' && defined.fields.some(({ field }) => field === 'properties'))
    throw invalid('other_columns', 'cannot be PROPERTIES beside the field properties');
  if (entity_type === 'EVENTS') checkRequired(defined.fields);
  return { name, entity_type, preset, ...defined };
}

/** Picks the terms that have a value. */
function toTerms<Terms extends Partial<ImportMappingTerms>>(terms: Terms): Pick<Terms, keyof ImportMappingTerms> {
  const names = Object.keys(DEFAULT_TERMS) as (keyof ImportMappingTerms)[];
  const entries = names.filter((name) => terms[name] !== undefined).map((name) => [name, terms[name]]);
  return Object.fromEntries(entries) as Pick<Terms, keyof ImportMappingTerms>;
}

const hasSource = ({ columns, value }: MappedField) => columns.length > 0 || value !== null;

type FieldChecks = {
  readonly entity_type: ImportedEntityType;
  readonly known: readonly string[];
  readonly hasPreset: boolean;
};

function checkFields(fields: readonly MappedField[], { entity_type, known, hasPreset }: FieldChecks): void {
  for (const [index, mapped] of fields.entries()) {
    const at = `fields[${index}]`;
    const [name = '', key] = splitField(mapped.field);
    const isMap = entity_type !== 'EVENTS' || name === 'properties';
    if (!known.includes(name) || key === '' || (key !== undefined && !isMap))
      throw invalid(
        `${at}.field`,
        `must be one of ${known.join(', ')}, or an entry of a map such as properties.<name>`,
      );
    if (fields.findIndex(({ field }) => field === mapped.field) < index) throw invalid(`${at}.field`, 'stands twice');
    if (!hasPreset && !hasSource(mapped)) throw invalid(`${at}.columns`, 'is required, or a value');
  }
}

/** Refuses a map beside an entry of it, such as `properties` and `properties.cost`, because one would replace the other. */
function checkNesting(fields: readonly MappedField[], inherited: readonly MappedField[]): void {
  for (const [index, mapped] of fields.entries()) {
    const [name, key] = splitField(mapped.field);
    const other = [...inherited, ...fields].filter(hasSource).find((one) => {
      const [map, entry] = splitField(one.field);
      return map === name && (entry === undefined) !== (key === undefined);
    });
    if (other && hasSource(mapped))
      throw invalid(`fields[${index}].field`, `stands beside ${other.field}: use one of them`);
  }
}

/** An event without a timestamp would count at the time of its import. */
function checkRequired(fields: readonly MappedField[]): void {
  for (const name of REQUIRED_EVENT_FIELDS) {
    const mapped = fields.find(({ field }) => field === name);
    if (!mapped) throw invalid('fields', `must have ${name}`);
    if (mapped.is_optional && mapped.value === null) throw invalid('fields', `cannot have ${name} as optional`);
  }
}
