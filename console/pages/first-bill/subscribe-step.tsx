/** A customer and a subscription in one form. The period begins with the month, so that events already sent are on the bill. */
import { Select, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useState } from 'react';
import { ApiError, api, readData } from '../../client/client.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { useTexts } from '../../texts/texts.ts';
import { useNow } from '../invoices/now.ts';
import styles from './first-bill.module.css';
import { findMonthStart } from './plan-year.ts';
import { Step, type StepProps } from './step.tsx';
import { TEXTS } from './texts.ts';
import type { FirstBill } from './use-first-bill.ts';

export function SubscribeStep({ bill, ...step }: StepProps): ReactNode {
  const texts = useTexts(TEXTS);
  return (
    <Step
      {...step}
      title={texts.subscribe}
      value={bill.subscription && <Subscribed subscription={bill.subscription} plans={bill.plans} />}
      summary={step.isOpen ? (bill.plans.length === 0 ? texts.firstSell : texts.subscribeHint) : undefined}
    >
      {bill.plans.length > 0 && <SubscribeForm bill={bill} />}
    </Step>
  );
}

function Subscribed({
  subscription,
  plans,
}: {
  subscription: NonNullable<FirstBill['subscription']>;
  plans: FirstBill['plans'];
}): ReactNode {
  const texts = useTexts(TEXTS);
  const { customer_id, plan_id, billing_period } = subscription;
  const customer = useGet('/customers/{id}', { path: { id: customer_id } });
  const plan = plans.find(({ id }) => id === plan_id)?.name ?? plan_id;
  const period = texts[billing_period as 'MONTHLY'] ?? billing_period;
  return (
    <Link
      from="/env/$environment_id"
      to="/env/$environment_id/subscriptions/$subscription_id"
      params={{ subscription_id: subscription.id }}
    >
      <bdi>{customer.data?.name ?? customer_id}</bdi>, <bdi>{texts.subscribed(plan, period)}</bdi>
    </Link>
  );
}

type SubscribeInput = { name: string; external_id: string; plan_id: string; start: Date };

/** Finds the customer of an external id, or creates it. */
async function createCustomerOnce({ name, external_id }: SubscribeInput): Promise<string> {
  try {
    const body = { external_id, ...(name === '' ? {} : { name }) };
    return (await readData(api.POST('/customers', { body }))).id;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
    const found = await readData(
      api.GET('/customers', { params: { query: { external_ids: [external_id] } as never } }),
    );
    const customer = found.items?.find((each) => each.external_id === external_id);
    if (!customer) throw error;
    return customer.id;
  }
}

function SubscribeForm({ bill }: { bill: FirstBill }): ReactNode {
  const texts = useTexts(TEXTS);
  const queries = useQueryClient();
  const now_ms = useNow();
  const [external_id, setExternalId] = useState(bill.events.at(0)?.external_customer_id ?? 'northwind');
  const [name, setName] = useState(external_id === 'northwind' ? 'Northwind Labs' : '');
  const [plan_id, setPlanId] = useState(bill.plans.at(-1)!.id);
  // The recurring price decides currency and period of the subscription.
  const price = bill.prices.find(
    (each) => each.entity_id === plan_id && each.billing_cadence === 'RECURRING' && each.billing_period,
  );
  const subscribe = useDeed(
    async (input: SubscribeInput) => {
      const customer_id = await createCustomerOnce(input);
      return readData(
        api.POST('/subscriptions', {
          body: {
            customer_id,
            plan_id: input.plan_id,
            currency: price!.currency,
            billing_period: price!.billing_period as 'MONTHLY',
            billing_period_count: price!.billing_period_count,
            billing_cycle: 'calendar',
            start_date: input.start.toISOString(),
          },
        }),
      );
    },
    () => invalidate(queries, '/subscriptions', '/customers', '/events', '/invoices'),
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    subscribe.mutate({ name, external_id, plan_id, start: findMonthStart(new Date(now_ms)) });
  };
  return (
    <form onSubmit={submit} className={styles.form}>
      <TextInput
        label={texts.customerName}
        value={name}
        error={findFieldError(subscribe, 'name')}
        onChange={({ currentTarget }) => setName(currentTarget.value)}
      />
      <TextInput
        label={texts.customerId}
        required
        value={external_id}
        error={findFieldError(subscribe, 'external_id')}
        onChange={({ currentTarget }) => setExternalId(currentTarget.value)}
      />
      <Select
        label={texts.plan}
        allowDeselect={false}
        value={plan_id}
        data={bill.plans.map((each) => ({ value: each.id, label: each.name }))}
        error={findFieldError(subscribe, 'plan_id') ?? (price ? undefined : texts.noPrice)}
        onChange={(value) => setPlanId(value ?? plan_id)}
      />
      <div className={styles.foot}>
        <FormFoot
          needs={['customer:write', 'subscription:write']}
          deed={subscribe}
          fields={['name', 'external_id', 'plan_id']}
          action={texts.subscribeNow}
          blocked={price ? null : texts.noPrice}
        />
      </div>
    </form>
  );
}
