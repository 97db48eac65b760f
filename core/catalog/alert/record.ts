/**
 * A spend alert watches a subscription, one of its lines or a group of its lines. The alert log contains the state changes of all alerts
 * (docs/rules/alerts.md). Alerts on balances are set on wallets and features themselves.
 */
import { z } from 'zod';
import { invalid } from '../../foundation/error.ts';
import { anyCase, baseFields, decimalText, orNull, timestampText } from '../../foundation/record.ts';
import { type AlertSettings, alertSettings, checkAlertSettings } from '../feature/record.ts';
import { ALERT_STATES, applyDirection } from './state.ts';

export const ALERT_ENTITY_TYPES = [
  'wallet',
  'feature',
  'subscription',
  'subscription_line_item',
  'group',
  'entitlement_grant',
] as const;
export const ALERT_TYPES = [
  'low_ongoing_balance',
  'low_credit_balance',
  'feature_wallet_balance',
  'subscription_spend',
  'subscription_line_item_spend',
  'subscription_group_spend',
  'entitlement_grant_threshold',
  'entitlement_grant_exhausted',
] as const;
export type AlertEntityType = (typeof ALERT_ENTITY_TYPES)[number];
export type AlertType = (typeof ALERT_TYPES)[number];

/** Alert type by entity, for alerts on spend. */
export const SPEND = {
  subscription: 'subscription_spend',
  subscription_line_item: 'subscription_line_item_spend',
  group: 'subscription_group_spend',
} as const satisfies Partial<Record<AlertEntityType, AlertType>>;
export type SpendEntity = keyof typeof SPEND;

export const newAlertSetting = z.object({
  entity_type: anyCase(ALERT_ENTITY_TYPES).meta({
    description:
      'Entity to watch: subscription, subscription_line_item or group. Others are refused: wallets, features and entitlements have alert settings of their own.',
  }),
  entity_id: z.string().min(1).meta({ description: 'Id of the entity to watch.' }),
  parent_entity_type: orNull(anyCase(ALERT_ENTITY_TYPES)).meta({
    description: '`subscription` for a line item or a group, where it is required. Refused for a subscription.',
  }),
  parent_entity_id: orNull(z.string()).meta({
    description: 'Id of the subscription of the line item or group, where it is required. Refused for a subscription.',
  }),
  config: alertSettings.meta({ description: 'Thresholds of the alert. The condition is `above`; `below` is refused.' }),
});
export type NewAlertSetting = z.output<typeof newAlertSetting>;

export const alertSettingShape = z.object({
  id: z.string(),
  entity_type: z.enum(ALERT_ENTITY_TYPES).meta({ description: 'Type of the watched entity.' }),
  entity_id: z.string().meta({ description: 'Id of the watched entity.' }),
  parent_entity_type: z
    .string()
    .nullish()
    .meta({ description: '`subscription` for a line item or a group; null for a subscription.' }),
  parent_entity_id: z
    .string()
    .nullish()
    .meta({ description: 'Subscription of the line item or group; null for a subscription.' }),
  enabled: z.boolean().meta({ description: 'Whether the alert is checked.' }),
  config: alertSettings.nullable().meta({ description: 'Thresholds of the alert.' }),
  ...baseFields,
});
export type AlertSetting = z.output<typeof alertSettingShape>;

export const alertLogShape = z.object({
  id: z.string(),
  entity_type: z.enum(ALERT_ENTITY_TYPES).meta({ description: 'Type of the entity whose alert state changed.' }),
  entity_id: z.string().meta({ description: 'Id of the entity whose alert state changed.' }),
  parent_entity_type: z
    .string()
    .nullish()
    .meta({ description: '`wallet` for a feature, `subscription` for a line item or a group.' }),
  parent_entity_id: z.string().nullish().meta({ description: 'Id of the parent entity.' }),
  customer_id: z.string().nullish().meta({ description: 'Customer of the entity; null if it has none.' }),
  alert_type: z
    .enum(ALERT_TYPES)
    .meta({ description: 'Type of the alert: the value that was compared with the thresholds.' }),
  alert_status: z.enum(ALERT_STATES).meta({ description: 'New alert state.' }),
  alert_info: z
    .object({
      alert_settings: alertSettings.nullish().meta({ description: 'Thresholds at the time of the change.' }),
      value_at_time: decimalText.meta({ description: 'Value that was compared with the thresholds.' }),
      timestamp: timestampText.meta({ description: 'Time of the comparison.' }),
    })
    .meta({ description: 'Cause of the change.' }),
  ...baseFields,
});
export type AlertLog = z.output<typeof alertLogShape>;

export function defineSpendAlert(input: NewAlertSetting): NewAlertSetting & { entity_type: SpendEntity } {
  const { entity_type, parent_entity_type, parent_entity_id } = input;
  if (!isSpend(entity_type)) throw invalid('entity_type', `must be one of ${Object.keys(SPEND).join(', ')}`);
  if (entity_type === 'subscription') {
    for (const field of ['parent_entity_type', 'parent_entity_id'] as const)
      if (input[field] !== null) throw invalid(field, 'is not allowed for a subscription');
  } else {
    if (parent_entity_type !== 'subscription') throw invalid('parent_entity_type', 'must be subscription');
    if (parent_entity_id === null) throw invalid('parent_entity_id', `is required for a ${entity_type}`);
  }
  return { ...input, entity_type, config: defineSpendLevels(input.config) };
}

function isSpend(entity_type: AlertEntityType): entity_type is SpendEntity {
  return Object.hasOwn(SPEND, entity_type);
}

export function defineSpendLevels(config: AlertSettings): AlertSettings {
  return requireLevelsAbove(config, 'config');
}

/** Spend grows, so its thresholds must have the condition `above`, which is the default. */
export function requireLevelsAbove(settings: AlertSettings, field: string): AlertSettings {
  for (const name of ['critical', 'warning', 'info'] as const)
    if (settings[name]?.condition === 'below') throw invalid(`${field}.${name}.condition`, 'must be above');
  const above = applyDirection(settings, 'above');
  checkAlertSettings(above, field);
  return above;
}

export function findWatchedSubscription({
  entity_type,
  entity_id,
  parent_entity_id,
}: Pick<AlertSetting, 'entity_type' | 'entity_id' | 'parent_entity_id'>) {
  return entity_type === 'subscription' ? entity_id : parent_entity_id!;
}

/** Key of the alert state of a watched spend. */
export function toSpendAlertKey({
  entity_type,
  entity_id,
  parent_entity_id = null,
}: Pick<AlertSetting, 'entity_type' | 'entity_id' | 'parent_entity_id'>) {
  return { alert_type: SPEND[entity_type as SpendEntity], entity_id, parent_entity_id };
}
