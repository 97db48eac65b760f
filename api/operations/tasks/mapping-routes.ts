/** Import mappings: create, find, change, archive; and the presets. */
import { changeImportMapping } from '../../../actions/operations/imports/change-mapping.ts';
import { listMappedFields } from '../../../actions/operations/imports/import-columns.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { defineImportMapping } from '../../../core/platform/import/mapping/define.ts';
import { listPresets } from '../../../core/platform/import/mapping/presets.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { ImportMappingModel } from '../../../storage/models/operations/import-mapping.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, type Route, route, toAuthor, toChangeOptions } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import {
  CreateImportMapping,
  ImportMappingAnswer,
  ImportMappingFilter,
  ImportMappingListAnswer,
  importMappingGrammar,
  PresetListAnswer,
  UpdateImportMapping,
} from './mapping-schema.ts';

const tag = 'Tasks';

const mappings = standardRoutes({
  noun: 'task',
  called: { path: '/tasks/mappings', name: 'ImportMapping', words: 'import mapping' },
  tag,
  answer: ImportMappingAnswer,
  model: ImportMappingModel,
  show: (mapping) => mapping,
  list: { filter: ImportMappingFilter, answer: ImportMappingListAnswer, find: findMappings },
});

export const mappingRoutes: Route[] = [
  mappings.create({
    summary: 'Create an import mapping',
    description:
      'Saves how the columns of a CSV file become fields, for imports with `mapping` and its name. Absent terms are ' +
      'those of the `preset`, else the defaults. A field replaces that of the preset; without columns and value it ' +
      'removes it.',
    body: CreateImportMapping,
    handle: ({ body }, context) => {
      const mapping = defineImportMapping(body, listMappedFields(body.entity_type));
      const record = {
        id: newId('import_mapping', context.now.getTime()),
        ...mapping,
        ...createdBy(toAuthor(context)),
      };
      const conflict = `an import mapping with name ${mapping.name} exists already`;
      return ImportMappingModel.add(context.scope, record, { database: context.services.postgres, conflict });
    },
  }),
  mappings.list,
  mappings.read({ summary: 'Get an import mapping', description: 'Returns the mapping, even if it is archived.' }),
  mappings.change({
    summary: 'Change an import mapping',
    description:
      'Changes the sent terms; `fields` replaces all fields. The kind of records and the preset remain. Accepted imports ' +
      'retain their terms.',
    body: UpdateImportMapping,
    handle: ({ params, body }, context) =>
      changeImportMapping(context.services, context.scope, { id: params.id, changes: body, author: toAuthor(context) }),
  }),
  mappings.archive({
    summary: 'Archive an import mapping',
    description: 'Archives the mapping and frees its name. Accepted imports retain its terms.',
    handle: async ({ params }, context) => {
      const changes = { status: 'archived' } as const;
      await ImportMappingModel.changePublished(context.scope, { id: params.id, changes }, toChangeOptions(context));
    },
  }),
  route({
    method: 'get',
    path: '/tasks/mappings/presets',
    operation_id: 'listImportPresets',
    summary: 'List the import presets',
    description:
      'Returns the built-in mappings for files of common producers. An import uses one by its name; a mapping builds on it.',
    tag,
    access: 'task:read',
    success: 200,
    answer: PresetListAnswer,
    handle: async () => ({ items: listPresets() }),
  }),
];

function findMappings(input: ImportMappingFilter, { scope, services }: Context) {
  const query = narrow(ImportMappingModel.in(scope, services.postgres), [
    ['name', input.name],
    ['entity_type', input.entity_type],
  ]);
  return fetchPage(query, input, importMappingGrammar);
}
