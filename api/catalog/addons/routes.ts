/** Add-ons: create, find, change, archive. */
import { archiveAddon } from '../../../actions/catalog/addons/archive-addon.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import { AddonModel } from '../../../storage/models/catalog/addon.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, type Route, toAuthor, toChangeOptions } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import { showAddon, showAddons } from './expand.ts';
import { AddonAnswer, AddonFilter, AddonListAnswer, addonGrammar, CreateAddon, UpdateAddon } from './schema.ts';

const tag = 'Add-ons';

const addons = standardRoutes({
  noun: 'addon',
  tag,
  answer: AddonAnswer,
  model: AddonModel,
  show: showAddon,
  list: { filter: AddonFilter, answer: AddonListAnswer, find: findAddons },
});

export const addonRoutes: Route[] = [
  addons.create({
    summary: 'Create an add-on',
    description:
      'Creates an add-on without prices and entitlements; add prices with `POST /prices` and the entity type ADDON. A `lookup_key` of another published add-on is refused.',
    body: CreateAddon,
    handle: ({ body }, context) => {
      const record = { id: newId('addon', context.now.getTime()), ...body, ...createdBy(toAuthor(context)) };
      const conflict = `an add-on with lookup_key ${body.lookup_key} exists already`;
      return AddonModel.add(context.scope, record, { database: context.services.postgres, conflict });
    },
  }),
  addons.list,
  addons.search,
  addons.readBy({
    summary: 'Get an add-on by lookup key',
    description:
      'Returns the published add-on with its prices, entitlements and credit grants. An archived add-on is not found.',
    under: 'lookup',
    key: 'lookup_key',
    operation: 'LookupKey',
    about: 'Lookup key of the add-on.',
    fetch: (scope, lookup_key, database) => AddonModel.fetchByKey(scope, lookup_key, database),
  }),
  addons.read({
    summary: 'Get an add-on',
    description:
      'Returns the add-on with its prices that have not ended, their meters, its entitlements and credit grants. An archived add-on is returned too.',
  }),
  addons.change({
    summary: 'Update an add-on',
    description: 'Changes the fields in the request. The lookup key cannot be changed.',
    body: UpdateAddon,
    handle: ({ params, body }, context) =>
      AddonModel.changePublished(context.scope, { id: params.id, changes: body }, toChangeOptions(context)),
  }),
  addons.archive({
    summary: 'Archive an add-on',
    description:
      'Archives the add-on and its entitlements, and releases its lookup key. Refused while it is attached to a subscription.',
    handle: ({ params }, context) =>
      archiveAddon(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
];

async function findAddons(input: AddonFilter, context: Context) {
  const query = narrow(AddonModel.in(context.scope, context.services.postgres), [
    ['id', input.addon_ids],
    ['lookup_key', input.lookup_keys],
    ['type', input.addon_type],
  ]);
  const page = await fetchPage(query, input, addonGrammar);
  return { ...page, items: await showAddons(page.items, input.expand ?? [], context) };
}
