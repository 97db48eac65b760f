import { z } from 'zod';
import { clearedMap, emailAddress, keyText, metadataMap } from '../../../core/foundation/record.ts';

const text = (longest: number) => z.string().max(longest).nullish();

const Address = z
  .object({
    address_line1: text(255),
    address_line2: text(255),
    address_city: text(100),
    address_state: text(100),
    address_postal_code: text(20),
    address_country: z
      .string()
      .regex(/^([A-Za-z]{2})?$/, { error: 'must be a country code of two letters' })
      .nullish()
      .meta({ description: 'Country code (ISO 3166-1, two letters), such as US.' }),
  })
  .meta({ id: 'Address' });

export const BillingDetails = z
  .object({
    email: z
      .union([emailAddress, z.literal('')])
      .nullish()
      .meta({ description: 'Contact for questions about invoices.' }),
    help_email: z
      .union([emailAddress, z.literal('')])
      .nullish()
      .meta({ description: 'Support contact for customers.' }),
    phone: text(50),
    address: Address.nullish().meta({ description: 'Address of the company.' }),
  })
  .meta({ id: 'TenantBillingDetails' });

export const UpdateTenant = z
  .object({
    name: keyText
      .trim()
      .min(1, { error: 'must not be blank' })
      .optional()
      .meta({ description: 'Name of the company; must not be blank. Default: unchanged.' }),
    billing_details: BillingDetails.nullish().meta({
      description:
        'Contact data of the company. An object replaces the previous one, and null clears it. Default: unchanged.',
    }),
    metadata: clearedMap.optional(),
  })
  .meta({
    id: 'UpdateTenantRequest',
    example: {
      name: 'Example Inc.',
      billing_details: { email: 'billing@example.com', address: { address_city: 'Berlin', address_country: 'DE' } },
    },
  });

export const TenantAnswer = z
  .object({
    id: z.string(),
    name: z.string().meta({ description: 'Name of the company.' }),
    billing_details: BillingDetails.nullable().meta({
      description: 'Contact data of the company; null before it is set.',
    }),
    status: z.string().meta({ description: 'Always published.' }),
    suspended: z
      .boolean()
      .meta({ description: 'True if the operator has suspended the tenant, which makes it read-only.' }),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    metadata: metadataMap.nullable(),
  })
  .meta({ id: 'TenantResponse' });
