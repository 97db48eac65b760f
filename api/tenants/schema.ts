/** Requests and answers of tenants. */
import { z } from 'zod';
import { keyText, metadataMap } from '../../core/record.ts';

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
      .nullish(),
  })
  .meta({ id: 'Address' });

const BillingDetails = z
  .object({
    email: z.union([z.email(), z.literal('')]).nullish(),
    help_email: z.union([z.email(), z.literal('')]).nullish(),
    phone: text(50),
    address: Address.nullish(),
  })
  .meta({ id: 'TenantBillingDetails' });

export const UpdateTenant = z
  .object({
    name: keyText.trim().min(1, { error: 'must not be blank' }).nullish(),
    billing_details: BillingDetails.nullish(),
    metadata: metadataMap.nullish(),
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
    name: z.string(),
    billing_details: BillingDetails.nullable(),
    status: z.string(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    metadata: metadataMap.nullable(),
  })
  .meta({ id: 'TenantResponse' });
