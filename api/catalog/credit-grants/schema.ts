/** Requests and answers of credit grants. */
import { z } from 'zod';
import { creditGrantFields, creditGrantScope, creditGrantShape } from '../../../core/catalog/credit-grant/record.ts';
import { creditGrantApplicationShape } from '../../../core/credits/grants/application.ts';
import { timestampText } from '../../../core/foundation/record.ts';
import { BASE_COLUMNS, type ListGrammar, listAnswer, listShape, matchAny } from '../../http/list.ts';

export const CreateCreditGrant = creditGrantFields.meta({
  id: 'CreateCreditGrantRequest',
  example: {
    name: 'Monthly credits',
    scope: 'PLAN',
    plan_id: 'plan_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
    credits: '100',
    cadence: 'RECURRING',
    period: 'MONTHLY',
    period_count: 1,
    expiration_type: 'BILLING_CYCLE',
  },
});

const { name, metadata } = creditGrantFields.shape;

export const UpdateCreditGrant = z
  .object({
    name: name.optional(),
    metadata: metadata.unwrap().optional(),
    end_date: timestampText.nullish().meta({
      description: 'End of the grant, for scope SUBSCRIPTION only; null removes the end.',
    }),
  })
  .meta({ id: 'UpdateCreditGrantRequest', example: { name: 'Credits of the month' } });

export const DeleteCreditGrant = z
  .object({
    effective_date: timestampText.nullish().meta({
      description:
        'Instant from which the grant gives no credits. Only for scope SUBSCRIPTION it may be in the future. Default: now.',
    }),
  })
  .nullish()
  .meta({ id: 'DeleteCreditGrantRequest', example: { effective_date: '2026-01-01T00:00:00Z' } });

export const CreditGrantFilter = listShape({
  credit_grant_ids: matchAny('credit grants'),
  plan_ids: matchAny('plans'),
  subscription_ids: matchAny('subscriptions'),
  addon_ids: matchAny('add-ons'),
  scope: creditGrantScope.optional().meta({ description: 'Scope of the grants: plan, subscription or add-on.' }),
}).meta({ id: 'CreditGrantFilter' });
export type CreditGrantFilter = z.output<typeof CreditGrantFilter>;

export const creditGrantGrammar: ListGrammar = {
  columns: {
    ...BASE_COLUMNS,
    name: 'string',
    scope: 'string',
    plan_id: 'string',
    subscription_id: 'string',
    addon_id: 'string',
    credits: 'number',
    cadence: 'string',
    period: 'string',
    period_count: 'number',
    expiration_type: 'string',
    expiration_duration: 'number',
    expiration_duration_unit: 'string',
    priority: 'number',
    start_date: 'date',
    end_date: 'date',
  },
};

export const CreditGrantAnswer = creditGrantShape.meta({ id: 'CreditGrantResponse' });
export const CreditGrantListAnswer = listAnswer(CreditGrantAnswer, 'ListCreditGrantsResponse');

const CreditGrantApplicationAnswer = creditGrantApplicationShape.meta({ id: 'CreditGrantApplicationResponse' });
export const CreditGrantApplicationListAnswer = listAnswer(
  CreditGrantApplicationAnswer,
  'ListCreditGrantApplicationsResponse',
);
