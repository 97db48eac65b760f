/** Records that a change of a setting names; they must exist (docs/rules/records.md, "Settings"). */
import { type SettingKey, type SettingValue, toWholeSetting } from './record.ts';

export type SettingReference = { readonly kind: 'plan' | 'feature' | 'meter' | 'payment_gateway'; readonly id: string };
type SettingReferenceFields = Readonly<Record<string, unknown>>;

/**
 * Lists the records that a change of a setting names. Only sent fields count, because a record that was named earlier
 * may have been archived since.
 */
export function listSettingReferences(
  key: SettingKey,
  value: SettingReferenceFields,
  sent: SettingReferenceFields,
): SettingReference[] {
  if (key === 'prepare_processed_events_config' && sent.plan_id) return [{ kind: 'plan', id: String(value.plan_id) }];
  if (key === 'payment_config' && sent.default_gateway)
    return [{ kind: 'payment_gateway', id: String(value.default_gateway) }];
  if (key === 'custom_analytics_config' && sent.rules) return listRuleReferences(toWholeSetting(key, value));
  return [];
}

function listRuleReferences({ rules }: SettingValue<'custom_analytics_config'>): SettingReference[] {
  return rules.flatMap(({ target_type, target_id }) =>
    target_type === 'event_name' ? [] : [{ kind: target_type, id: target_id }],
  );
}
