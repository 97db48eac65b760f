/** Requests and answers of alerts. */
import { z } from 'zod';
import {
  ALERT_ENTITY_TYPES,
  ALERT_TYPES,
  alertLogShape,
  alertSettingShape,
  newAlertSetting,
} from '../../core/catalog/alert/record.ts';
import { ALERT_STATES } from '../../core/catalog/alert/state.ts';
import { anyCase } from '../../core/foundation/record.ts';
import { CustomerAnswer } from '../catalog/customers/schema.ts';
import { FeatureAnswer } from '../catalog/features/schema.ts';
import { WalletAnswer } from '../credits/wallets/schema.ts';
import { BASE_COLUMNS, flag, type ListGrammar, listAnswer, listShape, matchAny } from '../http/list.ts';

const config = {
  alert_enabled: true,
  critical: { threshold: '1000', condition: 'above' },
  warning: { threshold: '800', condition: 'above' },
};

export const CreateAlertSetting = newAlertSetting.meta({
  id: 'CreateAlertSettingsRequest',
  example: { entity_type: 'subscription', entity_id: 'subs_01JZ8K3M5N7P9Q1R3S5T7V9W1X', config },
});

export const UpdateAlertSetting = newAlertSetting.pick({ config: true }).meta({
  id: 'UpdateAlertSettingsRequest',
  example: { config: { ...config, info: { threshold: '500', condition: 'above' } } },
});

const entityType = anyCase(ALERT_ENTITY_TYPES).optional();

export const AlertSettingFilter = listShape({
  entity_type: entityType.meta({ description: 'Type of the watched entity.' }),
  entity_id: z.string().optional().meta({ description: 'Id of the watched entity.' }),
  entity_ids: matchAny('ids of watched entities'),
  parent_entity_type: entityType.meta({ description: 'Type of the parent: `subscription` for line items and groups.' }),
  parent_entity_id: z.string().optional().meta({ description: 'Id of the subscription of the line item or group.' }),
  parent_entity_ids: matchAny('subscriptions of line items and groups'),
  enabled: flag.optional().meta({ description: 'True for enabled settings, false for disabled ones.' }),
}).meta({ id: 'AlertSettingsFilter', example: { entity_type: 'subscription', enabled: true } });
export type AlertSettingFilter = z.output<typeof AlertSettingFilter>;

export const alertSettingGrammar: ListGrammar = {
  columns: {
    ...BASE_COLUMNS,
    entity_type: 'string',
    entity_id: 'string',
    parent_entity_type: 'string',
    parent_entity_id: 'string',
    enabled: 'boolean',
  },
};

export const AlertLogFilter = listShape({
  entity_type: entityType.meta({ description: 'Type of the entity whose state changed.' }),
  entity_id: z.string().optional().meta({ description: 'Id of the entity whose state changed.' }),
  alert_type: anyCase(ALERT_TYPES).optional().meta({ description: 'Type of the alert.' }),
  alert_status: anyCase(ALERT_STATES).optional().meta({ description: 'State after the change.' }),
  customer_id: z.string().optional().meta({ description: 'Id of the customer.' }),
}).meta({ id: 'AlertLogFilter', example: { alert_type: 'low_credit_balance', expand: ['customer', 'wallet'] } });
export type AlertLogFilter = z.output<typeof AlertLogFilter>;

export const alertLogGrammar: ListGrammar = {
  columns: {
    ...BASE_COLUMNS,
    entity_type: 'string',
    entity_id: 'string',
    parent_entity_type: 'string',
    parent_entity_id: 'string',
    customer_id: 'string',
    alert_type: 'string',
    alert_status: 'string',
  },
  expand: ['customer', 'wallet', 'feature'],
};

export const AlertSettingAnswer = alertSettingShape.meta({ id: 'AlertSettingsResponse' });
export const AlertSettingListAnswer = listAnswer(AlertSettingAnswer, 'ListAlertSettingsResponse');

const where = (name: string) => `Record that the entry refers to, if \`expand\` names ${name}; null otherwise.`;
const AlertLogAnswer = alertLogShape
  .extend({
    customer: CustomerAnswer.nullish().meta({ description: where('customer') }),
    wallet: WalletAnswer.nullish().meta({ description: where('wallet') }),
    feature: FeatureAnswer.nullish().meta({ description: where('feature') }),
  })
  .meta({ id: 'AlertLogResponse' });
export const AlertLogListAnswer = listAnswer(AlertLogAnswer, 'ListAlertLogsResponse');
