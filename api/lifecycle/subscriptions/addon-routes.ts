/** Add-ons of subscriptions: attach, detach, list. */

import { z } from 'zod';
import { loadWithLines } from '../../../actions/invoicing/records/invoice-records.ts';
import { attachAddon } from '../../../actions/lifecycle/subscriptions/attach-addon.ts';
import { detachAddon } from '../../../actions/lifecycle/subscriptions/detach-addon.ts';
import { indexById } from '../../../core/foundation/by-id.ts';
import { formatUs, toInstant, toUs } from '../../../core/foundation/time/instant.ts';
import { refuseUsed } from '../../../core/subscriptions/not-yet.ts';
import { AddonModel } from '../../../storage/models/catalog/addon.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { AddonAssociationModel } from '../../../storage/models/subscriptions/addon-association.ts';
import { SubscriptionModel } from '../../../storage/models/subscriptions/subscription.ts';
import { SubscriptionLineItemModel } from '../../../storage/models/subscriptions/subscription-line-item.ts';
import { showAddons } from '../../catalog/addons/expand.ts';
import { checkExpand } from '../../http/list.ts';
import { type Context, idParams, MessageAnswer, type Route, route, toAuthor } from '../../http/route.ts';
import { showSubscriptions } from '../../subscriptions/expand.ts';
import { showWarnings } from '../../subscriptions/warnings.ts';
import {
  ADDON_ASSOCIATION_PARTS,
  AddonAssociationAnswer,
  AddonAssociationExpand,
  AttachAddon,
  AttachAddonAnswer,
  DetachAddon,
} from './addon-schema.ts';

const tag = 'Subscriptions';

export const subscriptionAddonRoutes: Route[] = [
  route({
    method: 'post',
    path: '/subscriptions/addon',
    operation_id: 'addSubscriptionAddon',
    summary: 'Attach an add-on to a subscription',
    description:
      "Adds a line for each price of the add-on in the subscription's currency, and the grants of the add-on. " +
      'Advance charges for the current period are on a separate invoice, which is final at once.',
    tag,
    access: 'subscription:write',
    body: AttachAddon,
    success: 200,
    answer: AttachAddonAnswer,
    idempotency: {
      replay: async (done, _input, context) => {
        const { scope, services } = context;
        const database = services.postgres;
        const association = await AddonAssociationModel.fetch(scope, done.made('addon_association'), { database });
        const [shown] = await showAssociations([association], [], context);
        const [invoice_id] = done.madeAll('invoice');
        const invoice = invoice_id ? await InvoiceModel.fetch(scope, invoice_id, { database }) : null;
        const warnings = await showAttachWarnings(association, context);
        return { ...shown!, invoice: invoice && (await loadWithLines(invoice, database)), warnings };
      },
    },
    handle: async ({ body }, context) => {
      const { subscription_id, checkout, ...request } = body;
      refuseUsed({ checkout }, ['checkout']);
      const attached = await attachAddon(context.services, context.scope, {
        subscription_id,
        request,
        author: toAuthor(context),
      });
      const [shown] = await showAssociations([attached.association], [], context);
      const warnings = await showAttachWarnings(attached.association, context);
      return { ...shown!, invoice: attached.settled?.invoice ?? null, warnings };
    },
  }),
  route({
    method: 'delete',
    path: '/subscriptions/addon',
    operation_id: 'removeSubscriptionAddon',
    summary: 'Detach an add-on from a subscription',
    description:
      'Ends the add-on at the end of the current period, or at an instant within it. Refused if it was detached before.',
    tag,
    access: 'subscription:write',
    body: DetachAddon,
    success: 200,
    answer: MessageAnswer,
    handle: async ({ body }, context) => {
      const request = { request: body, author: toAuthor(context) };
      const { end_date } = await detachAddon(context.services, context.scope, request);
      return { message: `the add-on is held until ${formatUs(toUs(toInstant(end_date!)))}` };
    },
  }),
  route({
    method: 'get',
    path: '/subscriptions/:id/addons/associations',
    operation_id: 'getSubscriptionAddonAssociations',
    summary: "List a subscription's add-ons",
    description: 'Returns the add-ons that have not ended, in the order of attachment, as an array without pages.',
    tag,
    access: 'subscription:read',
    params: idParams,
    query: AddonAssociationExpand,
    success: 200,
    answer: z.array(AddonAssociationAnswer),
    handle: async ({ params, query }, context) => {
      checkExpand(query.expand ?? [], { columns: {}, expand: ADDON_ASSOCIATION_PARTS });
      const { scope, services, now } = context;
      await SubscriptionModel.fetch(scope, params.id, { database: services.postgres });
      const currentAssociations = await AddonAssociationModel.notEnded(scope, now, services.postgres)
        .where('entity_id', params.id)
        .orderBy(['created_at', 'id']);
      return showAssociations(currentAssociations, query.expand ?? [], context);
    },
  }),
];

async function showAttachWarnings({ id, entity_id }: AddonAssociationModel, context: Context) {
  const { scope, services } = context;
  const subscription = await SubscriptionModel.fetch(scope, entity_id, { database: services.postgres });
  const lines = await SubscriptionLineItemModel.in(scope, services.postgres)
    .where({ subscription_id: subscription.id, status: 'published' })
    .where({ addon_association_id: id });
  return showWarnings(subscription, lines, context);
}

async function showAssociations(
  associations: readonly AddonAssociationModel[],
  expand: readonly string[],
  context: Context,
) {
  const { scope, services, now } = context;
  const addonIds = associations.map(({ addon_id }) => addon_id);
  const addons = await AddonModel.byId(scope, addonIds, services.postgres);
  const shownAddons = indexById(await showAddons([...addons.values()], [], context));
  const subscriptionIds = associations.map(({ entity_id }) => entity_id);
  const subscriptions = await SubscriptionModel.byId(scope, subscriptionIds, services.postgres);
  const shownSubscriptions = expand.includes('subscription') ? [...subscriptions.values()] : [];
  const shown = new Map((await showSubscriptions(shownSubscriptions, [], context)).map((one) => [one.id, one]));
  return associations.map((association) => {
    const isOver = association.end_date !== null && toInstant(association.end_date) <= now.getTime();
    const hasGone = subscriptions.get(association.entity_id)?.subscription_status === 'cancelled';
    return {
      ...association,
      addon_status: isOver || hasGone ? ('cancelled' as const) : association.addon_status,
      addon: shownAddons.get(association.addon_id) ?? null,
      subscription: shown.get(association.entity_id) ?? null,
    };
  });
}
