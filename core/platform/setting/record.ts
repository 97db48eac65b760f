/**
 * Settings of a tenant or environment that differ from the defaults. A key has one shape and one default. Only differing fields are stored;
 * a read returns the whole setting (docs/rules/records.md, "Settings").
 */
import { z } from 'zod';
import { alertSettings, checkAlertSettings, FEATURE_TYPES } from '../../catalog/feature/record.ts';
import { ON_EXPIRY } from '../../credits/reservations/record.ts';
import { ttlSeconds } from '../../credits/reservations/request.ts';
import { bonusSetting } from '../../credits/wallet/bonus.ts';
import { invalid } from '../../foundation/error.ts';
import { anyCase, buildBoundedInteger, decimalText, emailAddress, keyText } from '../../foundation/record.ts';
import { DAY_SECONDS } from '../../foundation/time/durations.ts';
import { isTimezone } from '../../foundation/time/zone.ts';
import { explainInvalid } from '../../foundation/why-invalid.ts';
import {
  DEFAULT_CREDIT_NOTE_NUMBERS,
  DEFAULT_INVOICE_NUMBERS,
  NUMBER_FORMATS,
} from '../../invoicing/document/number.ts';
import { color, invoicePdfSetting } from '../../invoicing/document/setting.ts';
import { paymentSetting } from '../../payments/setting.ts';

type SettingShape = z.ZodObject;
type SettingKind = {
  readonly shape: SettingShape;
  readonly default: Readonly<Record<string, unknown>>;
  /** A setting of the tenant applies to all its environments. */
  readonly reach: 'tenant' | 'environment';
  /** Checks rules across several fields. */
  readonly check?: (value: never) => void;
};

const numberConfig = z.strictObject({
  prefix: z.string().max(20),
  format: anyCase(NUMBER_FORMATS),
  start_sequence: buildBoundedInteger(1, 1_000_000_000),
  timezone: z.string().refine(isTimezone, { error: 'must be an IANA timezone such as Europe/Berlin' }),
  separator: z.string().max(5),
  suffix_length: buildBoundedInteger(1, 10),
});
const invoiceConfig = numberConfig.extend({
  due_date_days: buildBoundedInteger(0, 3650),
  auto_complete_purchased_credit_transaction: z.boolean(),
  finalization_delay_seconds: buildBoundedInteger(0, 365 * DAY_SECONDS),
});

const analyticsRule = z.strictObject({
  id: keyText.min(1),
  target_type: anyCase(['feature', 'meter', 'event_name']),
  target_id: keyText.min(1),
});
const mandateLimit = z.strictObject({
  max_amount: decimalText,
  currency: z.string().regex(/^[A-Za-z]{3}$/, { error: 'must be a currency of three letters' }),
});
const free = z.record(z.string(), z.unknown());

export const SETTINGS = {
  invoice_config: {
    reach: 'environment',
    shape: invoiceConfig,
    default: {
      ...DEFAULT_INVOICE_NUMBERS,
      due_date_days: 1,
      auto_complete_purchased_credit_transaction: false,
      finalization_delay_seconds: 7200,
    },
  },
  credit_note_config: { reach: 'environment', shape: numberConfig, default: DEFAULT_CREDIT_NOTE_NUMBERS },
  tax_config: {
    reach: 'environment',
    shape: z.strictObject({ taxes_before_credits: z.boolean() }),
    default: { taxes_before_credits: false },
  },
  subscription_config: {
    reach: 'environment',
    shape: z.strictObject({
      grace_period_days: buildBoundedInteger(1, 3650),
      auto_cancellation_enabled: z.boolean(),
      refuse_shared_meters: z.boolean(),
    }),
    default: { grace_period_days: 3, auto_cancellation_enabled: false, refuse_shared_meters: false },
  },
  invoice_pdf_config: invoicePdfSetting,
  invoice_mail_config: {
    reach: 'environment',
    shape: z.strictObject({
      invoices: z.boolean(),
      reminders: z.boolean(),
      reply_to: z.nullable(emailAddress),
      bcc: z.array(emailAddress).max(10),
    }),
    default: { invoices: true, reminders: true, reply_to: null, bcc: [] },
  },
  tenant_config: {
    reach: 'tenant',
    shape: z.strictObject({
      production: buildBoundedInteger(0, 1000),
      development: buildBoundedInteger(0, 1000),
      max_users: buildBoundedInteger(1, 100_000),
    }),
    default: { production: 5, development: 20, max_users: 100 },
  },
  customer_onboarding: {
    reach: 'environment',
    shape: z.strictObject({ workflow_type: z.nullable(keyText), actions: z.array(free).max(50) }),
    default: { workflow_type: null, actions: [] },
  },
  wallet_balance_alert_config: {
    reach: 'environment',
    shape: alertSettings.strict(),
    default: {
      alert_enabled: false,
      critical: { threshold: '0', condition: 'below' },
      warning: null,
      info: null,
    },
    check: (settings: z.output<typeof alertSettings>) => checkAlertSettings(settings, 'value'),
  },
  prepare_processed_events_config: {
    reach: 'environment',
    shape: z.strictObject({
      feature_type: z.nullable(anyCase(FEATURE_TYPES)),
      meter: z.nullable(free),
      price: z.nullable(free),
      plan_id: z.nullable(keyText),
    }),
    default: { feature_type: null, meter: null, price: null, plan_id: null },
  },
  custom_analytics_config: {
    reach: 'environment',
    shape: z.strictObject({ rules: z.array(analyticsRule).max(1000) }),
    default: { rules: [] },
  },
  customer_portal_config: {
    reach: 'environment',
    shape: z.strictObject({
      version: z.nullable(keyText),
      theme: z.strictObject({
        primary_color: z.nullable(color).default(null),
        secondary_color: z.nullable(color).default(null),
        tertiary_color: z.nullable(color).default(null),
      }),
      sections: z.array(free).max(50),
    }),
    default: {
      version: null,
      theme: { primary_color: null, secondary_color: null, tertiary_color: null },
      sections: [],
    },
  },
  event_ingestion_filter: {
    reach: 'environment',
    shape: z.strictObject({ enabled: z.boolean(), allowed_external_customer_ids: z.array(keyText).max(10_000) }),
    default: { enabled: false, allowed_external_customer_ids: [] },
  },
  bonus_credits_topup_config: bonusSetting,
  payment_config: paymentSetting,
  payment_mandate_limits: {
    reach: 'environment',
    shape: z.strictObject({ mandate_limits: z.record(keyText, mandateLimit) }),
    default: { mandate_limits: {} },
  },
  reservation_config: {
    reach: 'environment',
    shape: z.strictObject({
      ttl_seconds: ttlSeconds,
      on_expiry: anyCase(ON_EXPIRY),
      when_in_doubt: anyCase(['deny', 'allow']),
    }),
    default: { ttl_seconds: 300, on_expiry: 'release', when_in_doubt: 'deny' },
  },
  draft_invoice_recompute_config: {
    reach: 'environment',
    shape: z.strictObject({ enabled: z.boolean() }),
    default: { enabled: false },
  },
} as const satisfies Record<string, SettingKind>;

export type SettingKey = keyof typeof SETTINGS;
export type SettingValue<Key extends SettingKey> = z.output<(typeof SETTINGS)[Key]['shape']>;
type SettingFields = Readonly<Record<string, unknown>>;

const KEYS = Object.keys(SETTINGS) as SettingKey[];

export function parseSettingKey(text: string): SettingKey {
  const known = KEYS.find((key) => key === text.toLowerCase());
  if (!known) throw invalid('key', `${text} is no setting`, { allowed: KEYS });
  return known;
}

/** Whether at least one field of the setting is stored, even with the value of its default. */
export function isSet(stored: SettingFields | undefined): boolean {
  return stored !== undefined && Object.keys(stored).length > 0;
}

/** Returns the whole setting: its defaults, overridden by the stored fields. */
export function toWholeSetting<Key extends SettingKey>(key: Key, stored: SettingFields | undefined): SettingValue<Key> {
  const { shape, default: preset } = SETTINGS[key] as SettingKind;
  return shape.parse({ ...preset, ...stored }) as SettingValue<Key>;
}

/**
 * Fields to store after a change. A sent field replaces the stored one; null restores the default. The result is checked as a whole, and an
 * error names its field in `sent_as`, the key of the request that has the fields.
 */
export function applySettingChange(
  key: SettingKey,
  stored: SettingFields | undefined,
  sent: SettingFields,
  sent_as = 'value',
): SettingFields {
  const { shape, default: preset, check } = SETTINGS[key] as SettingKind;
  const changed = Object.fromEntries(Object.entries({ ...stored, ...sent }).filter(([, value]) => value !== null));
  const parsed = shape.safeParse({ ...preset, ...changed }, { error: explainInvalid });
  if (!parsed.success) throw toSentError(parsed.error, sent_as);
  check?.(parsed.data as never);
  const fields = Object.keys(changed);
  return Object.fromEntries(fields.map((field) => [field, (parsed.data as Record<string, unknown>)[field]]));
}

/** Prefixes the paths of errors, because the fields are in a key of the request. */
function toSentError(error: z.ZodError, sent_as: string): z.ZodError {
  return new z.ZodError(
    error.issues.map((issue) => {
      const unknown = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
      const path = [sent_as, ...issue.path, ...unknown];
      return { ...issue, path, message: unknown.length ? 'is no field of this setting' : issue.message };
    }),
  );
}
