/** Request body for a new price, with an example for OpenAPI. Imports of a file use it as well. */
import { createPriceShape } from './record.ts';

const PRICE_EXAMPLE = {
  entity_type: 'PLAN',
  entity_id: 'plan_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
  type: 'FIXED',
  billing_model: 'FLAT_FEE',
  amount: '20',
  currency: 'usd',
  billing_period: 'MONTHLY',
  invoice_cadence: 'ADVANCE',
  lookup_key: 'pro_base',
};
export const CreatePriceRequest = createPriceShape.meta({ id: 'CreatePriceRequest', example: PRICE_EXAMPLE });
