/** Finds the mapping of an import: a preset, or a saved mapping (docs/rules/imports.md, "Mappings"). */
import { invalid } from '../../../core/foundation/error.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import { findPreset } from '../../../core/platform/import/mapping/presets.ts';
import { DEFAULT_TERMS, PRESET_NAMES, type UsedMapping } from '../../../core/platform/import/mapping/record.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { ImportMappingModel } from '../../../storage/models/operations/import-mapping.ts';
import type { NewImport } from './import-later.ts';

type MappingReference = Pick<NewImport, 'entity_type' | 'file_type'> & { readonly mapping: string | null };

export async function findImportMapping(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { mapping: name, entity_type, file_type }: MappingReference,
): Promise<UsedMapping | null> {
  if (name === null) return null;
  if (file_type !== 'CSV') throw invalid('mapping', 'is for CSV files: the keys of JSON are those of a request');
  const found = findPreset(name) ?? (await ImportMappingModel.findByName(scope, name, postgres));
  if (!found) throw invalid('mapping', `names no mapping and no preset (${PRESET_NAMES.join(', ')})`);
  if (found.entity_type !== entity_type) throw invalid('mapping', `makes ${found.entity_type}, not ${entity_type}`);
  const terms = Object.keys(DEFAULT_TERMS) as (keyof typeof DEFAULT_TERMS)[];
  const used = Object.fromEntries(terms.map((term) => [term, found[term]])) as typeof DEFAULT_TERMS;
  return { name: found.name, entity_type, ...used };
}
