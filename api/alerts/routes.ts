/** Alerts: settings that watch spending, and the log of the state changes of all alerts (docs/rules/alerts.md). */
import { archiveAlertSetting, changeAlertSetting, createAlertSetting } from '../../actions/alerts/alert-settings.ts';
import { indexById } from '../../core/foundation/by-id.ts';
import { AlertLogModel } from '../../storage/models/alerts/alert-log.ts';
import { AlertSettingModel } from '../../storage/models/alerts/alert-setting.ts';
import { CustomerModel } from '../../storage/models/catalog/customer.ts';
import { FeatureModel } from '../../storage/models/catalog/feature.ts';
import { WalletModel } from '../../storage/models/credits/wallet.ts';
import { narrow } from '../../storage/models/foundation/page.ts';
import { showCustomers } from '../catalog/customers/expand.ts';
import { showFeatures } from '../catalog/features/expand.ts';
import { showWallets } from '../credits/wallets/show.ts';
import { fetchPage } from '../http/list.ts';
import { type Context, idParams, type Route, route, toAuthor } from '../http/route.ts';
import { standardRoutes } from '../http/standard-routes.ts';
import {
  AlertLogFilter,
  AlertLogListAnswer,
  AlertSettingAnswer,
  AlertSettingFilter,
  AlertSettingListAnswer,
  alertLogGrammar,
  alertSettingGrammar,
  CreateAlertSetting,
  UpdateAlertSetting,
} from './schema.ts';

const tag = 'Alerts';

const settings = standardRoutes({
  noun: 'alert_settings',
  called: { path: '/alerts/setting', name: 'AlertSetting', words: 'alert setting' },
  tag,
  answer: AlertSettingAnswer,
  model: AlertSettingModel,
  show: (setting) => setting,
  list: { filter: AlertSettingFilter, answer: AlertSettingListAnswer, find: findSettings },
});

export const alertRoutes: Route[] = [
  route({
    method: 'post',
    path: '/alerts/search',
    operation_id: 'queryAlertLog',
    summary: 'Search the alert log',
    description:
      'Returns one entry per change of state of an alert on the balance of a wallet, the spending of a subscription or the usage of a grant. Default order: newest first.',
    tag,
    access: 'alert_settings:read',
    body: AlertLogFilter,
    success: 200,
    answer: AlertLogListAnswer,
    handle: ({ body }, context) => findLogs(body, context),
  }),
  settings.create({
    summary: 'Create an alert setting',
    description:
      'Watches the spending of a subscription, of one of its usage lines or of a group of its lines in the running period, as in `/subscriptions/usage`. A second alert on the same target is refused with 409. Wallets, features and entitlements have their own alert settings.',
    body: CreateAlertSetting,
    handle: ({ body }, context) =>
      createAlertSetting(context.services, context.scope, { input: body, author: toAuthor(context) }),
  }),
  settings.search,
  settings.read({
    summary: 'Get an alert setting',
    description: 'Returns the alert setting. An archived one is returned too.',
  }),
  settings.change({
    summary: 'Replace the levels of an alert',
    description: 'Replaces all levels. A level that is already reached is reported within seconds.',
    body: UpdateAlertSetting,
    handle: ({ params, body }, context) =>
      changeAlertSetting(context.services, context.scope, {
        id: params.id,
        config: body.config,
        author: toAuthor(context),
      }),
  }),
  route({
    method: 'delete',
    path: '/alerts/setting/:id',
    operation_id: 'deleteAlertSetting',
    summary: 'Archive an alert setting',
    description: 'Ends the checks of the setting. Its log entries remain.',
    tag,
    access: 'alert_settings:write',
    params: idParams,
    success: 204,
    handle: ({ params }, context) =>
      archiveAlertSetting(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
];

async function findSettings(input: AlertSettingFilter, context: Context) {
  const query = narrow(AlertSettingModel.in(context.scope, context.services.postgres), [
    ['entity_type', input.entity_type],
    ['entity_id', input.entity_id],
    ['entity_id', input.entity_ids],
    ['parent_entity_type', input.parent_entity_type],
    ['parent_entity_id', input.parent_entity_id],
    ['parent_entity_id', input.parent_entity_ids],
    ['enabled', input.enabled],
  ]);
  return fetchPage(query, input, alertSettingGrammar);
}

async function findLogs(input: AlertLogFilter, context: Context) {
  const query = narrow(AlertLogModel.in(context.scope, context.services.postgres), [
    ['entity_type', input.entity_type],
    ['entity_id', input.entity_id],
    ['alert_type', input.alert_type],
    ['alert_status', input.alert_status],
    ['customer_id', input.customer_id],
  ]);
  const page = await fetchPage(query, input, alertLogGrammar);
  return { ...page, items: await showLogs(page.items, input.expand ?? [], context) };
}

async function showLogs(logs: readonly AlertLogModel[], expand: readonly string[], context: Context) {
  const { scope, services } = context;
  const collectIds = (type: string) =>
    expand.includes(type)
      ? logs.flatMap((log) => [
          log.entity_type === type ? log.entity_id : null,
          log.parent_entity_type === type ? log.parent_entity_id : null,
        ])
      : [];
  const customerIds = expand.includes('customer') ? logs.map(({ customer_id }) => customer_id) : [];
  const customers = await CustomerModel.byId(scope, customerIds, services.postgres);
  const wallets = await WalletModel.byId(scope, collectIds('wallet'), services.postgres);
  const features = await FeatureModel.byId(scope, collectIds('feature'), services.postgres);
  const shown = {
    customers: indexById(await showCustomers([...customers.values()], context)),
    wallets: indexById(await showWallets([...wallets.values()], [], context)),
    features: indexById(await showFeatures([...features.values()], [], context)),
  };
  return logs.map((log) => ({
    ...log,
    customer: shown.customers.get(log.customer_id ?? '') ?? null,
    wallet: shown.wallets.get(log.entity_id) ?? shown.wallets.get(log.parent_entity_id ?? '') ?? null,
    feature: shown.features.get(log.entity_id) ?? null,
  }));
}
