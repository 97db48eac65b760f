/** The setting `payment_config`: retries of failed payments and their end (docs/rules/payments.md). */
import { z } from 'zod';
import { anyCase, buildBoundedInteger } from '../foundation/record.ts';
import { PAYMENT_GATEWAYS } from './record.ts';

const paymentConfig = z.strictObject({
  default_gateway: z.nullable(anyCase(PAYMENT_GATEWAYS)),
  retry_after_days: z.array(buildBoundedInteger(1, 365)).max(20),
  after_last_try: anyCase(['keep_active', 'mark_incomplete', 'cancel']),
});
export type PaymentConfig = z.output<typeof paymentConfig>;

export const paymentSetting = {
  reach: 'environment',
  shape: paymentConfig,
  default: { default_gateway: null, retry_after_days: [3, 5, 7], after_last_try: 'keep_active' },
} as const;
