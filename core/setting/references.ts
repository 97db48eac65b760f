/** Which records a change of a setting names: they must be there (docs/rules/records.md, "Settings"). */
import { type SettingKey, type SettingOf, wholeSetting } from './record.ts';

export type Reference = { readonly kind: 'plan' | 'feature' | 'meter' | 'payment_gateway'; readonly id: string };
type Given = Readonly<Record<string, unknown>>;

/** Those of the fields that are sent: what was named before may have been archived since. */
export function referencesOf(key: SettingKey, value: Given, sent: Given): Reference[] {
  if (key === 'prepare_processed_events_config' && sent.plan_id) return [{ kind: 'plan', id: String(value.plan_id) }];
  if (key === 'payment_config' && sent.default_gateway)
    return [{ kind: 'payment_gateway', id: String(value.default_gateway) }];
  if (key === 'custom_analytics_config' && sent.rules) return rulesOf(wholeSetting(key, value));
  return [];
}

function rulesOf({ rules }: SettingOf<'custom_analytics_config'>): Reference[] {
  return rules.flatMap(({ target_type, target_id }) =>
    target_type === 'event_name' ? [] : [{ kind: target_type, id: target_id }],
  );
}
