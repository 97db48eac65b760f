/**
 * An id is a type prefix + `_` + a 26-character time-sortable id (docs/rules/records.md, "Ids"): 48 bits of milliseconds and 80 bits of
 * entropy in Crockford's base 32. Time and entropy are arguments, so `core` stays pure.
 */
export const ID_PREFIX = {
  tenant: 'tenant',
  environment: 'env',
  user: 'user',
  secret: 'secret',
  session: 'sess',
  event: 'event',
  meter: 'meter',
  feature: 'feat',
  plan: 'plan',
  price: 'price',
  commitment_bucket: 'bucket',
  price_unit: 'price_unit',
  group: 'group',
  coupon: 'coupon',
  coupon_application: 'coupon_app',
  tax_rate: 'taxrate',
  tax_association: 'ta',
  tax_applied: 'taxapp',
  costsheet: 'cost',
  credit_grant: 'cg',
  credit_grant_application: 'cga',
  coupon_association: 'coupon_assoc',
  addon: 'addon',
  addon_association: 'addon_assoc',
  entitlement: 'ent',
  entitlement_grant: 'eg',
  customer: 'cust',
  subscription: 'subs',
  subscription_line_item: 'subs_line',
  subscription_phase: 'phase',
  invoice: 'inv',
  invoice_line_item: 'inv_line',
  credit_note: 'cn',
  credit_note_line_item: 'cn_line',
  audit_entry: 'audit',
  request: 'req',
  setting: 'setting',
  workflow: 'wf',
  run: 'run',
  test_clock: 'clock',
  system_event: 'sys_event',
  wallet: 'wallet',
  alert_setting: 'alert_set',
  alert_log: 'alert',
  wallet_transaction: 'wtxn',
  ledger_transaction: 'ltxn',
  subscription_schedule: 'sched',
  reservation: 'resv',
  payment: 'pay',
  payment_attempt: 'attempt',
  payment_refund: 'refund',
  payment_method: 'paym',
  checkout_session: 'cs',
  sandbox_charge: 'sbx',
  webhook_endpoint: 'whep',
  webhook_delivery: 'whd',
  webhook_attempt: 'wha',
  task: 'task',
  scheduled_task: 'schedtask',
  import_mapping: 'impmap',
  connection: 'conn',
  integration_mapping: 'imap',
  oauth_session: 'oauth',
  provider_event: 'pevt',
} as const;

export type IdKind = keyof typeof ID_PREFIX;

const BASE32 = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** `prefix_` + 10 characters of time + 16 of entropy; `entropy` has at least 10 bytes. */
export function formatId(kind: IdKind, timeMs: number, entropy: Uint8Array): string {
  return `${ID_PREFIX[kind]}_${base32(timeMs, 10)}${base32(fortyBits(entropy, 0), 8)}${base32(fortyBits(entropy, 5), 8)}`;
}

/** Reads five bytes as one integer: 40 bits stay below 2^53. */
function fortyBits(bytes: Uint8Array, from: number): number {
  let value = 0;
  for (let i = from; i < from + 5; i++) value = value * 256 + bytes[i]!;
  return value;
}

function base32(value: number, length: number): string {
  let text = '';
  let rest = value;
  for (let i = 0; i < length; i++) {
    text = BASE32[rest % 32] + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}
