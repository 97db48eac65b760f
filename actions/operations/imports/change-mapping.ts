/** Changes a saved mapping (docs/rules/imports.md, "Mappings"). Accepted imports retain their terms. */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Author } from '../../../core/foundation/stamp.ts';
import { defineImportMapping } from '../../../core/platform/import/mapping/define.ts';
import type { ImportMappingChanges } from '../../../core/platform/import/mapping/record.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { ImportMappingModel } from '../../../storage/models/operations/import-mapping.ts';
import { listMappedFields } from './import-columns.ts';

export function changeImportMapping(
  { postgres }: Pick<Stores, 'postgres'>,
  scope: Scope,
  { id, changes, author }: { id: string; changes: ImportMappingChanges; author: Author },
): Promise<ImportMappingModel> {
  return postgres.transaction(async (database) => {
    const mapping = await ImportMappingModel.fetchChangeable(scope, id, database);
    const { entity_type, preset } = mapping;
    // The stored terms contain those of the preset, so a field is not taken from it again.
    const terms = { ...mapping, ...dropAbsent(changes), preset: null };
    const defined = { ...defineImportMapping(terms, listMappedFields(entity_type)), preset };
    const conflict = `an import mapping with name ${defined.name} exists already`;
    return ImportMappingModel.change(mapping, defined, { by: author, database, conflict });
  });
}

function dropAbsent(changes: ImportMappingChanges): ImportMappingChanges {
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
}
