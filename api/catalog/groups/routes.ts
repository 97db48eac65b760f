/** Groups: create, find, archive. Prices and features join one by their `group_id`. */
import { archiveGroup } from '../../../actions/catalog/groups/archive-group.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import { GroupModel } from '../../../storage/models/catalog/group.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import { showGroup, showGroups } from './expand.ts';
import { CreateGroup, GroupAnswer, GroupFilter, GroupListAnswer, groupGrammar } from './schema.ts';

const tag = 'Groups';

const groups = standardRoutes({
  noun: 'group',
  tag,
  answer: GroupAnswer,
  model: GroupModel,
  show: showGroup,
  list: { filter: GroupFilter, answer: GroupListAnswer, find: findGroups },
});

export const groupRoutes: Route[] = [
  groups.create({
    summary: 'Create a group',
    description:
      'Creates a group of prices or of features, without members. Prices and features join it by their `group_id`.',
    body: CreateGroup,
    handle: ({ body }, context) => {
      const record = { id: newId('group', context.now.getTime()), ...body, ...createdBy(toAuthor(context)) };
      const conflict = `a group with lookup_key ${body.lookup_key} exists already`;
      return GroupModel.add(context.scope, record, { database: context.services.postgres, conflict });
    },
  }),
  groups.search,
  groups.read({
    summary: 'Get a group',
    description: 'Returns the group with the ids of its members. An archived group is returned too and has no members.',
  }),
  route({
    method: 'delete',
    path: '/groups/:id',
    operation_id: 'deleteGroup',
    summary: 'Archive a group',
    description: 'Archives the group and releases its lookup key. Its members remain, without a group.',
    tag,
    access: 'group:write',
    params: idParams,
    success: 204,
    handle: ({ params }, context) =>
      archiveGroup(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
];

async function findGroups(input: GroupFilter, context: Context) {
  const query = narrow(GroupModel.in(context.scope, context.services.postgres), [
    ['id', input.group_ids],
    ['lookup_key', input.lookup_key],
    ['entity_type', input.entity_type],
    ['name', 'contains', input.name || undefined],
  ]);
  const page = await fetchPage(query, input, groupGrammar);
  return { ...page, items: await showGroups(page.items, context) };
}
