/** Debt, balance and details of a customer. */
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useMayNot } from '../../client/permission.ts';
import { Button } from '../../components/button.tsx';
import { CopyId } from '../../components/copy.tsx';
import { type Fact, Facts, Section, Sheet } from '../../components/page.tsx';
import { Money, Unknown } from '../../figures/money.tsx';
import { Day } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { useCountryName } from './country.ts';
import { type CustomerRecord, listAddressLines, type SummedAmount } from './customer.ts';
import styles from './customer-page.module.css';
import { PAGE_TEXTS } from './page-texts.ts';
import { useSummaries } from './summaries.ts';
import { TEXTS } from './texts.ts';

const FROM = '/env/$environment_id/customers/$customer_id';

export function CustomerFigures({ customer: { id } }: { customer: CustomerRecord }): ReactNode {
  const texts = useTexts(PAGE_TEXTS);
  const summary = useSummaries([id]).get(id);
  const toInvoices = (show: 'outstanding' | 'overdue', amounts: readonly SummedAmount[] | undefined) =>
    amounts && amounts.length > 0 ? (
      <Link
        from={FROM}
        to="/env/$environment_id/invoices"
        params={({ environment_id }) => ({ environment_id })}
        search={({ zone }) => ({ zone, customer: id, show })}
        className="label"
      >
        {texts.showInvoices}
      </Link>
    ) : undefined;
  return (
    <dl className={styles.figures}>
      <Figure
        label={texts.owed}
        amounts={summary?.owed}
        none={texts.nothing}
        end={toInvoices('outstanding', summary?.owed)}
      />
      <Figure
        label={texts.overdue}
        amounts={summary?.overdue}
        none={texts.nothing}
        isBad
        end={toInvoices('overdue', summary?.overdue)}
      />
      <Figure label={texts.balance} amounts={summary?.balance} none={texts.noWallet} />
    </dl>
  );
}

type FigureProps = {
  label: string;
  amounts: readonly SummedAmount[] | undefined;
  /** Words for an empty list. */
  none: string;
  isBad?: boolean;
  end?: ReactNode;
};

function Figure({ label, amounts, none, isBad = false, end }: FigureProps): ReactNode {
  return (
    <div>
      <dt>{label}</dt>
      {amounts === undefined ? (
        <dd>
          <Unknown />
        </dd>
      ) : amounts.length === 0 ? (
        <dd className={styles.noFigure}>{none}</dd>
      ) : (
        amounts.map(({ currency, amount }) => (
          <dd key={currency} className={`${styles.value} ${isBad ? styles.bad : ''}`}>
            <Money amount={amount} currency={currency} />
          </dd>
        ))
      )}
      {end && <dd>{end}</dd>}
    </div>
  );
}

export function CustomerFacts({ customer, onEdit }: { customer: CustomerRecord; onEdit: () => void }): ReactNode {
  const texts = useTexts(PAGE_TEXTS);
  const formTexts = useTexts(TEXTS);
  const mayNot = useMayNot('customer:write');
  const nameCountry = useCountryName();
  const { email, contact, timezone, tax_exempt, tax_ids, created_at, parent_customer_id } = customer;
  const address = listAddressLines(customer, nameCountry);
  const facts: Fact[] = [
    { label: formTexts.externalId, value: <CopyId id={customer.external_id} /> },
    { label: formTexts.email, value: email || <Unknown /> },
    ...(contact ? [{ label: formTexts.contact, value: <bdi>{contact}</bdi> }] : []),
    {
      label: formTexts.address,
      value:
        address.length === 0 ? (
          <Unknown />
        ) : (
          address.map((line, at) => (
            <div key={`${at}${line}`}>
              <bdi>{line}</bdi>
            </div>
          ))
        ),
    },
    { label: formTexts.tax, value: formTexts[tax_exempt] },
    ...(tax_ids ?? []).map(({ type, value }) => ({
      label: `${formTexts.taxNumber}, ${type}`,
      value: <span className="mono">{value}</span>,
    })),
    { label: formTexts.timezone, value: timezone },
    ...(parent_customer_id
      ? [
          {
            label: texts.parent,
            value: (
              <Link
                from={FROM}
                to="/env/$environment_id/customers/$customer_id"
                params={({ environment_id }) => ({ environment_id, customer_id: parent_customer_id })}
                search={({ zone }) => ({ zone })}
              >
                <bdi>{customer.parent_customer?.name || parent_customer_id}</bdi>
              </Link>
            ),
          },
        ]
      : []),
    { label: texts.since, value: <Day at={created_at} /> },
  ];
  return (
    <Section
      title={texts.details}
      end={
        <Button blocked={mayNot} onClick={onEdit}>
          {texts.edit}
        </Button>
      }
    >
      <Sheet>
        <Facts facts={facts} />
      </Sheet>
    </Section>
  );
}
