/** Settings of the environment, and tenant_config of the tenant: read as a whole, changed field by field. */
import { changeSetting, resetSetting } from '../../../actions/operations/settings/change-setting.ts';
import {
  isSet,
  parseSettingKey,
  SETTINGS,
  type SettingKey,
  toWholeSetting,
} from '../../../core/platform/setting/record.ts';
import { findSetting, listSettings } from '../../../storage/models/foundation/setting.ts';
import { type Context, MessageAnswer, type Route, route, toAuthor } from '../../http/route.ts';
import { KEYS, SettingAnswer, SettingListAnswer, settingParams, UpdateSetting } from './schema.ts';

const tag = 'Settings';

export const settingRoutes: Route[] = [
  route({
    method: 'get',
    path: '/settings',
    operation_id: 'listSettings',
    summary: 'List all settings',
    description:
      'Returns every setting with all fields, its defaults, and whether it is set. Unchanged fields have their defaults.',
    tag,
    access: 'setting:read',
    success: 200,
    answer: SettingListAnswer,
    handle: async (_input, context) => {
      const rows = await listSettings(context.scope, context.services.postgres);
      return { items: KEYS.map((key) => shown(key, rows.get(key), context)) };
    },
  }),
  route({
    method: 'get',
    path: '/settings/:key',
    operation_id: 'getSetting',
    summary: 'Get a setting',
    description: 'Returns all fields of the setting. Unchanged fields have their defaults.',
    tag,
    access: 'setting:read',
    params: settingParams,
    success: 200,
    answer: SettingAnswer,
    handle: async ({ params }, context) => {
      const key = parseSettingKey(params.key);
      const row = await findSetting(context.scope, key, { database: context.services.postgres });
      return shown(key, row, context);
    },
  }),
  route({
    method: 'put',
    path: '/settings/:key',
    operation_id: 'updateSetting',
    summary: 'Change a setting',
    description: 'Changes the sent fields only; each replaces its previous value entirely. For a super_admin only.',
    tag,
    access: 'setting:write',
    params: settingParams,
    body: UpdateSetting,
    success: 200,
    answer: SettingAnswer,
    handle: async ({ params, body }, context) => {
      const { services, scope, principal } = context;
      const key = parseSettingKey(params.key);
      const input = { key, sent: body.value, principal, author: toAuthor(context) };
      return shown(key, await changeSetting(services, scope, input), context);
    },
  }),
  route({
    method: 'delete',
    path: '/settings/:key',
    operation_id: 'deleteSetting',
    summary: 'Reset a setting',
    description:
      'Resets the setting to its defaults. For a super_admin only. Refused with 404 if it has its defaults already.',
    tag,
    access: 'setting:write',
    params: settingParams,
    success: 200,
    answer: MessageAnswer,
    handle: async ({ params }, context) => {
      const { services, scope, principal } = context;
      const key = parseSettingKey(params.key);
      await resetSetting(services, scope, { key, principal, author: toAuthor(context) });
      return { message: `${key} is as by default` };
    },
  }),
];

/** Defaults that the process configuration overrides. */
function settingPreset(key: SettingKey, { FINALIZATION_DELAY_SECONDS }: Context['services']['config']) {
  return key === 'invoice_config' ? { finalization_delay_seconds: FINALIZATION_DELAY_SECONDS } : {};
}

function shown(key: SettingKey, row: Awaited<ReturnType<typeof findSetting>>, { scope, services }: Context) {
  const environment_id = SETTINGS[key].reach === 'tenant' ? '' : scope.environment_id;
  const unset = { id: '', status: 'published', created_at: null, updated_at: null, created_by: '', updated_by: '' };
  const preset = settingPreset(key, services.config);
  const value = { ...toWholeSetting(key, { ...preset, ...row?.value }) };
  const whole_default = toWholeSetting(key, preset);
  const is_set = isSet(row?.value);
  const fields = { key, value, default: whole_default, is_set, tenant_id: scope.tenant_id, environment_id };
  return { ...unset, ...(is_set ? row : {}), ...fields };
}
