/** Records of HubSpot that this service reads. Properties are texts; those without a value are null or absent. */

/** Ids of the types of records. Their names differ between versions of the API, and a type may be renamed. */
const TYPE_IDS = {
  contact: '0-1',
  company: '0-2',
  deal: '0-3',
  line_item: '0-8',
  invoice: '0-53',
  discount: '0-84',
  payment: '0-101',
} as const;
export type HubSpotType = keyof typeof TYPE_IDS;

export function toTypeId(type: HubSpotType): string {
  return TYPE_IDS[type];
}

/** Finds the type of an event's record; null if this service does not read records of the type. */
export function findType(type_id: string | undefined): HubSpotType | null {
  return (Object.keys(TYPE_IDS) as HubSpotType[]).find((type) => TYPE_IDS[type] === type_id) ?? null;
}

/** Ids of the kinds of associations, which HubSpot defines. */
const ASSOCIATIONS = {
  deal_to_contact: 3,
  invoice_to_contact: 177,
  company_to_contact: 280,
  deal_to_company: 341,
  payment_to_contact: 387,
  line_item_to_invoice: 410,
  discount_to_invoice: 412,
  payment_to_invoice: 542,
} as const;

type HubSpotAssociation = {
  readonly to: { readonly id: string };
  readonly types: readonly { readonly associationCategory: 'HUBSPOT_DEFINED'; readonly associationTypeId: number }[];
};

export function buildAssociation(kind: keyof typeof ASSOCIATIONS, id: string): HubSpotAssociation {
  return {
    to: { id },
    types: [{ associationCategory: 'HUBSPOT_DEFINED', associationTypeId: ASSOCIATIONS[kind] }],
  };
}

type HubSpotProperties = Readonly<Record<string, string | null | undefined>>;
export type HubSpotRecord = { readonly id: string; readonly properties: HubSpotProperties };

/** A record to create. */
export type HubSpotInput = {
  readonly properties: Readonly<Record<string, string>>;
  readonly associations?: readonly HubSpotAssociation[];
};

/** Property with our id, of the records that a push creates. HubSpot refuses a second record with one value. */
export const ID_PROPERTY = 'farthing_id';

export const READ_PROPERTIES: Readonly<Partial<Record<HubSpotType, readonly string[]>>> = {
  contact: [ID_PROPERTY],
  company: [ID_PROPERTY],
  deal: [ID_PROPERTY, 'dealstage'],
  invoice: [
    ...[ID_PROPERTY, 'hs_invoice_status', 'hs_currency', 'hs_amount_billed', 'hs_balance_due'],
    'hs_invoice_link',
  ],
  payment: [
    ...[ID_PROPERTY, 'hs_initial_amount', 'hs_currency_code', 'hs_latest_status', 'hs_initiated_date'],
    ...['hs_refunds_amount', 'hs_number_of_associated_invoices'],
  ],
};
