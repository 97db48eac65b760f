/** Requests and answers of import mappings. */
import { z } from 'zod';
import {
  importMappingChanges,
  importMappingFields,
  importMappingShape,
  presetShape,
} from '../../../core/platform/import/mapping/record.ts';
import { BASE_COLUMNS, type ListGrammar, listAnswer, listShape } from '../../http/list.ts';

export const CreateImportMapping = importMappingFields.meta({
  id: 'CreateImportMappingRequest',
  example: {
    name: 'cloud costs',
    preset: 'FOCUS',
    fields: [{ field: 'external_customer_id', columns: ['Tags.team'] }],
  },
});

export const UpdateImportMapping = importMappingChanges.meta({
  id: 'UpdateImportMappingRequest',
  example: { delimiter: 'SEMICOLON' },
});

export const ImportMappingFilter = listShape({
  name: z.string().optional().meta({ description: 'Exact name.' }),
  entity_type: importMappingShape.shape.entity_type.optional().meta({ description: 'Kind of the imported records.' }),
}).meta({ id: 'ImportMappingFilter' });
export type ImportMappingFilter = z.output<typeof ImportMappingFilter>;

export const importMappingGrammar: ListGrammar = {
  columns: { ...BASE_COLUMNS, name: 'string', entity_type: 'string', preset: 'string' },
};

export const ImportMappingAnswer = importMappingShape.meta({ id: 'ImportMappingResponse' });
export const ImportMappingListAnswer = listAnswer(ImportMappingAnswer, 'ListImportMappingsResponse');
export const PresetListAnswer = z
  .object({ items: z.array(presetShape).meta({ description: 'The presets.' }) })
  .meta({ id: 'ListImportPresetsResponse' });
