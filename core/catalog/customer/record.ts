/**
 * A customer is the party that is billed; clients know it by its own `external_id`. Its texts have maximum lengths, and its country is a
 * two-letter code. Its timezone, by default UTC, is that of its new subscriptions (docs/rules/subscriptions.md, "What is taken over from
 * the plan"). Texts that are not set are "".
 */
import { z } from 'zod';
import { invalid } from '../../foundation/error.ts';
import {
  anyCase,
  baseFields,
  emailAddress,
  keyText,
  metadata,
  optionalKey,
  requiredKey,
} from '../../foundation/record.ts';
import { isTimezone } from '../../foundation/time/zone.ts';

/** Assigned codes of ISO 3166-1 alpha-2. */
const COUNTRIES = new Set(
  `AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC
  CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD
  GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH
  KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW
  MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC
  SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY
  UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW`.split(/\s+/),
);

/** A text that a client may omit or clear; "" means not set. */
const clearable = (text: z.ZodString) =>
  text
    .nullable()
    .transform((given) => given ?? '')
    .pipe(z.string());

const TAX_EXEMPTIONS = ['none', 'exempt', 'reverse'] as const;
const taxId = z.object({
  type: keyText.min(1).meta({ description: 'Type of the tax number, such as eu_vat.' }),
  value: keyText.min(1).meta({ description: 'Tax number.' }),
});

export const customerShape = z.object({
  id: z.string(),
  external_id: requiredKey.meta({
    description: 'Your own id of the customer, as in the customer’s events; unique among published customers.',
  }),
  name: z.string().max(255).meta({ description: 'Display name, at most 255 characters. Default: the external id.' }),
  email: clearable(
    z
      .string()
      .max(320)
      .superRefine((text, context) => {
        const fault = text === '' ? undefined : emailAddress.safeParse(text).error?.issues[0];
        if (fault) context.addIssue({ code: 'custom', message: fault.message });
      }),
  ).meta({ description: 'Email address for invoices, at most 320 characters.' }),
  contact: clearable(z.string().max(20)),
  address_line1: clearable(z.string().max(255)),
  address_line2: clearable(z.string().max(255)),
  address_city: clearable(z.string().max(100)),
  address_state: clearable(z.string().max(100)),
  address_postal_code: clearable(z.string().max(20)),
  address_country: clearable(
    z.string().refine((text) => text === '' || COUNTRIES.has(text), {
      error: 'must be an ISO 3166-1 alpha-2 code such as US',
    }),
  ).meta({ description: 'Country code (ISO 3166-1 alpha-2), such as US.' }),
  timezone: z
    .string()
    .refine(isTimezone, { error: 'must be an IANA timezone such as Europe/Berlin' })
    .meta({ description: 'IANA timezone; new subscriptions without a timezone use it. Default: UTC.' }),
  tax_exempt: anyCase(TAX_EXEMPTIONS).meta({
    description:
      'Tax status: `none`, `exempt`, or `reverse` if the customer owes the tax to the state. Only customers with `none` are taxed. Default: none.',
  }),
  tax_ids: z.array(taxId).max(20).nullable().meta({
    description: 'Tax numbers of the customer, such as a VAT number, at most 20; invoices show them.',
  }),
  metadata: metadata.unwrap(),
  ...baseFields,
  parent_customer_id: optionalKey.meta({
    description: 'Parent customer, which must not have a parent itself; null if none.',
  }),
});
export type Customer = z.output<typeof customerShape>;

/** Fields of a customer that a client sets. */
export const customerFields = customerShape.omit({
  id: true,
  tenant_id: true,
  environment_id: true,
  status: true,
  created_at: true,
  updated_at: true,
  created_by: true,
  updated_by: true,
  parent_customer_id: true,
});
export type CustomerFields = z.output<typeof customerFields>;

type NewCustomerInput = Partial<Omit<CustomerFields, 'external_id' | 'name' | 'timezone' | 'tax_exempt'>> & {
  external_id: string;
  name?: string | null | undefined;
  timezone?: string | null | undefined;
  tax_exempt?: CustomerFields['tax_exempt'] | null | undefined;
};

/** A missing name defaults to the external id, a missing timezone to UTC. */
export function buildCustomer(given: NewCustomerInput): CustomerFields {
  return {
    email: '',
    contact: '',
    address_line1: '',
    address_line2: '',
    address_city: '',
    address_state: '',
    address_postal_code: '',
    address_country: '',
    ...given,
    name: given.name?.trim() ? given.name : given.external_id,
    timezone: given.timezone || 'UTC',
    tax_exempt: given.tax_exempt ?? 'none',
    tax_ids: given.tax_ids ?? null,
    metadata: given.metadata ?? null,
  };
}

/**
 * The hierarchy has two levels (docs/rules/records.md, "Customers"): a customer that has a parent cannot be a parent. The caller locks both
 * customers, so concurrent requests cannot make them parents of each other.
 */
export function checkParent(
  child: { id: string; has_children: boolean },
  parent: Pick<Customer, 'id' | 'parent_customer_id'>,
): void {
  const field = 'parent_customer_id';
  if (parent.id === child.id) throw invalid(field, 'a customer is not its own parent');
  if (parent.parent_customer_id !== null) throw invalid(field, `customer ${parent.id} has a parent itself`);
  if (child.has_children) throw invalid(field, `customer ${child.id} is the parent of others`);
}
