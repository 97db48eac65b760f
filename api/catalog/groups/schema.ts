/** Requests and answers of groups. */
import { z } from 'zod';
import { groupEntityType, groupFields, groupShape } from '../../../core/catalog/group/record.ts';
import { BASE_COLUMNS, type ListGrammar, listAnswer, listShape, matchAny } from '../../http/list.ts';

export const CreateGroup = groupFields.meta({
  id: 'CreateGroupRequest',
  example: { name: 'Usage', entity_type: 'price', lookup_key: 'usage' },
});

export const GroupFilter = listShape({
  group_ids: matchAny('groups'),
  lookup_key: z.string().optional().meta({ description: 'Exact lookup key.' }),
  entity_type: groupEntityType.optional().meta({ description: 'Type of the members: price or feature.' }),
  name: z.string().optional().meta({ description: 'Part of the name.' }),
}).meta({ id: 'GroupFilter', example: { entity_type: 'price', limit: 10 } });
export type GroupFilter = z.output<typeof GroupFilter>;

export const groupGrammar: ListGrammar = {
  columns: { ...BASE_COLUMNS, name: 'string', entity_type: 'string', lookup_key: 'string' },
};

export const GroupAnswer = groupShape
  .extend({
    entity_ids: z.array(z.string()).meta({ description: 'Ids of the group’s published prices or features.' }),
  })
  .meta({ id: 'GroupResponse' });
export const GroupListAnswer = listAnswer(GroupAnswer, 'ListGroupsResponse');
