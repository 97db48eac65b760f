/**
 * Deals and companies (docs/integrations/hubspot.md, "Deals"; developers.hubspot.com, "Deals", "Companies", "Pipelines"). A subscription is a deal in the default
 * pipeline; a customer that is a business is also a company.
 */
import type { PushedCustomer, PushedSubscription } from '../account.ts';
import { cut, NAME_MAX, toAddressInput, toAmount, toInstantText } from './documents.ts';
import { buildAssociation, type HubSpotInput } from './records.ts';

/** Id of the pipeline that each account has. */
const PIPELINE = 'default';

/** Stage of a deal, by the status of its subscription. The stages are those with which the default pipeline begins. */
const STAGES: Readonly<Record<PushedSubscription['subscription_status'], string>> = {
  draft: 'presentationscheduled',
  trialing: 'decisionmakerboughtin',
  incomplete: 'contractsent',
  active: 'closedwon',
  paused: 'closedwon',
  cancelled: 'closedlost',
};

export function toStageInput({ subscription_status }: Pick<PushedSubscription, 'subscription_status'>) {
  return { dealstage: STAGES[subscription_status] };
}

export function toDealInput(subscription: PushedSubscription, company_id: string | null): HubSpotInput {
  const { name, amount, currency, start_date, provider_customer_id } = subscription;
  return {
    properties: {
      dealname: cut(name, NAME_MAX),
      pipeline: PIPELINE,
      ...toStageInput(subscription),
      amount: toAmount(amount, currency),
      deal_currency_code: currency.toUpperCase(),
      closedate: toInstantText(start_date),
    },
    associations: [
      buildAssociation('deal_to_contact', provider_customer_id),
      ...(company_id === null ? [] : [buildAssociation('deal_to_company', company_id)]),
    ],
  };
}

export function toCompanyInput(name: string, { address }: PushedCustomer, contact_id: string): HubSpotInput {
  const properties = { name: cut(name, NAME_MAX), ...toAddressInput(address) };
  return {
    properties: Object.fromEntries(Object.entries(properties).filter(([, text]) => text !== '')),
    associations: [buildAssociation('company_to_contact', contact_id)],
  };
}
