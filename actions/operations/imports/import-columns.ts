/** Columns of a CSV file without a mapping, which are also the fields that a mapping may name. */
import { EVENT_COLUMNS, EVENT_FIELDS } from '../../../core/platform/import/event-row.ts';
import type { ImportedEntity } from './import-later.ts';
import { RECORDS } from './take-records.ts';

export function listImportColumns(entity_type: ImportedEntity): readonly string[] {
  return entity_type === 'EVENTS' ? EVENT_COLUMNS : Object.keys(RECORDS[entity_type].shape.shape);
}

export function listMappedFields(entity_type: ImportedEntity): readonly string[] {
  return entity_type === 'EVENTS' ? EVENT_FIELDS : listImportColumns(entity_type);
}
