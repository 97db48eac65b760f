/** Requests and answers of tenants. */
import { z } from 'zod';
import { clearedMap, keyText, metadataMap } from '../../core/record.ts';

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
      .meta({ description: 'Two letters of ISO 3166-1, such as US.' }),
  })
  .meta({ id: 'Address' });

const BillingDetails = z
  .object({
    email: z
      .union([z.email(), z.literal('')])
      .nullish()
      .meta({ description: 'Where questions about invoices go to.' }),
    help_email: z
      .union([z.email(), z.literal('')])
      .nullish()
      .meta({ description: 'Where customers find help.' }),
    phone: text(50),
    address: Address.nullish().meta({ description: 'The address of the company.' }),
  })
  .meta({ id: 'TenantBillingDetails' });

export const UpdateTenant = z
  .object({
    name: keyText
      .trim()
      .min(1, { error: 'must not be blank' })
      .optional()
      .meta({ description: 'The name of the company; stays when absent.' }),
    billing_details: BillingDetails.nullish().meta({
      description: 'How the company is reached; replaced as a whole, cleared by null, and stays when absent.',
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
    name: z.string().meta({ description: 'The name of the company.' }),
    billing_details: BillingDetails.nullable().meta({
      description: 'How the company is reached; null until it is stated.',
    }),
    status: z.string().meta({ description: 'published.' }),
    suspended: z.boolean().meta({ description: 'Whether the operator lets it read and not write.' }),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    metadata: metadataMap.nullable(),
  })
  .meta({ id: 'TenantResponse' });
