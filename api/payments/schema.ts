import { z } from 'zod';
import { anyCase } from '../../core/foundation/record.ts';
import { paymentStatus } from '../../core/invoicing/invoice/record.ts';
import {
  createPaymentShape,
  DESTINATION_TYPES,
  PAYMENT_GATEWAYS,
  PAYMENT_METHOD_TYPES,
  Payment,
  PaymentAttempt,
  PaymentMethod,
  PaymentRefund,
  refundPaymentShape,
  savePaymentMethodShape,
  startCardSetupShape,
  startedCardSetupShape,
  updatePaymentShape,
} from '../../core/payments/record.ts';
import { BASE_COLUMNS, type ListGrammar, listAnswer, listShape, matchAny } from '../http/list.ts';

export const CreatePayment = createPaymentShape.meta({
  id: 'CreatePaymentRequest',
  example: {
    destination_type: 'INVOICE',
    destination_id: 'inv_01JZ8K3M5N7P9Q1R3S5T7V9WCX',
    payment_method_type: 'CARD',
    payment_method_id: 'pm_sandbox_card',
    payment_gateway: 'sandbox',
    amount: '30',
    currency: 'usd',
    idempotency_key: 'order-4711',
    process_payment: false,
  },
});
export const UpdatePayment = updatePaymentShape.meta({
  id: 'UpdatePaymentRequest',
  example: { metadata: { statement: '2026-01' } },
});
export const RefundPayment = refundPaymentShape
  .nullish()
  .transform((request) => request ?? { amount: null, reason: null, idempotency_key: null })
  .meta({ id: 'RefundPaymentRequest', example: { amount: '5', reason: 'the service was down for a day' } });
export const SavePaymentMethod = savePaymentMethodShape.meta({
  id: 'SavePaymentMethodRequest',
  example: { payment_gateway: 'sandbox', gateway_payment_method_id: 'pm_sandbox_card' },
});
export const StartCardSetup = startCardSetupShape.meta({
  id: 'StartCardSetupRequest',
  example: { provider: 'stripe', success_url: 'https://shop.example/cards', set_default: true },
});
export const CardSetupAnswer = startedCardSetupShape.meta({ id: 'CardSetupResponse' });
export const ActInSandbox = z
  .object({ outcome: z.enum(['succeeded', 'failed']).meta({ description: 'Outcome of the payment.' }) })
  .meta({ id: 'ActInSandboxRequest', example: { outcome: 'succeeded' } });

const PaymentAttemptAnswer = PaymentAttempt.meta({ id: 'PaymentAttemptResponse' });
const PaymentRefundAnswer = PaymentRefund.meta({ id: 'PaymentRefundResponse' });
export const PaymentAnswer = Payment.extend({
  attempts: z.array(PaymentAttemptAnswer).nullable().meta({
    description: 'Attempts, oldest first. Present for a single payment; in a list only if `expand` names them.',
  }),
  refunds: z.array(PaymentRefundAnswer).nullable().meta({
    description: 'Refunds, oldest first. Present for a single payment; in a list only if `expand` names them.',
  }),
}).meta({ id: 'PaymentResponse' });

export const PaymentMethodAnswer = PaymentMethod.meta({ id: 'PaymentMethodResponse' });

export const PaymentFilter = listShape({
  payment_ids: matchAny('payments'),
  destination_type: anyCase(DESTINATION_TYPES)
    .optional()
    .meta({ description: 'Type of the paid record: always INVOICE.' }),
  destination_id: z.string().optional().meta({ description: 'Id of the invoice.' }),
  payment_method_type: anyCase(PAYMENT_METHOD_TYPES).optional().meta({ description: 'Kind of payment method.' }),
  payment_status: paymentStatus.optional().meta({ description: 'Status of the payment.' }),
  payment_gateway: anyCase(PAYMENT_GATEWAYS).optional().meta({ description: 'Payment provider.' }),
  currency: z.string().optional().meta({ description: 'Currency code (ISO 4217), case-insensitive.' }),
  gateway_payment_id: z.string().optional().meta({ description: 'Id of the payment at the payment provider.' }),
  gateway_tracking_id: z
    .string()
    .optional()
    .meta({ description: 'Key that was sent to the provider with the payment.' }),
}).meta({ id: 'PaymentFilter', example: { payment_status: 'SUCCEEDED', limit: 1 } });
export type PaymentFilter = z.output<typeof PaymentFilter>;
export const PaymentListAnswer = listAnswer(PaymentAnswer, 'ListPaymentsResponse');

export const paymentGrammar: ListGrammar = {
  columns: {
    ...BASE_COLUMNS,
    customer_id: 'string',
    destination_id: 'string',
    invoice_number: 'string',
    idempotency_key: 'string',
    payment_method_type: 'string',
    payment_method_id: 'string',
    payment_gateway: 'string',
    amount: 'number',
    currency: 'string',
    payment_status: 'string',
    succeeded_at: 'date',
    failed_at: 'date',
    refunded_at: 'date',
    voided_at: 'date',
    attempt_count: 'number',
    next_attempt_at: 'date',
  },
  expand: ['attempts', 'refunds'],
  metadata: true,
};

export const PaymentMethodFilter = listShape({}).meta({ id: 'PaymentMethodFilter', example: { limit: 10 } });
export type PaymentMethodFilter = z.output<typeof PaymentMethodFilter>;
export const PaymentMethodListAnswer = listAnswer(PaymentMethodAnswer, 'ListPaymentMethodsResponse');
export const paymentMethodGrammar: ListGrammar = {
  columns: { ...BASE_COLUMNS, payment_gateway: 'string', gateway_payment_method_id: 'string', is_default: 'boolean' },
};
