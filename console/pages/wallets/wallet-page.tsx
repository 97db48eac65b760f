/** A wallet: its balance now and after what is used, its lots, its ledger, and what can be done with it. */
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense } from 'react';
import { useMayNot } from '../../client/permission.ts';
import { useGet } from '../../client/queries.ts';
import { Button } from '../../components/button.tsx';
import { CopyId } from '../../components/copy.tsx';
import { MoreMenu } from '../../components/more-menu.tsx';
import { PageHead, Section } from '../../components/page.tsx';
import { RecordTools } from '../../components/record-tools.tsx';
import { SideSheet, WithSheet } from '../../components/side-sheet.tsx';
import { Loaded } from '../../components/states.tsx';
import { formatMoney, formatQuantity } from '../../figures/format.ts';
import { BigMoney, Money, Quantity, WhyButton } from '../../figures/money.tsx';
import { ExactTime } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { BalanceThread } from './balance-thread.tsx';
import { useCustomerNames } from './customer-names.ts';
import { Ledger } from './ledger.tsx';
import { Lots } from './lots.tsx';
import type { WalletSearch } from './routes.ts';
import { TEXTS } from './texts.ts';
import { formatWalletName, isMoneyWallet, type LiveWallet } from './wallet.ts';
import { CloseWallet, DebitWallet, TopUpWallet } from './wallet-deeds.tsx';
import { WalletStatus } from './wallet-status.tsx';
import styles from './wallets.module.css';

const FROM = '/env/$environment_id/wallets/$wallet_id';
const LIVE_MS = 5_000;

const BalanceChart = lazy(async () => ({ default: (await import('./balance-chart.tsx')).BalanceChart }));

export function WalletPage(): ReactNode {
  const { wallet_id } = useParams({ from: FROM });
  const wallet = useGet(
    '/wallets/{id}/balance/real-time',
    { path: { id: wallet_id }, query: { expand: ['credits_available_breakdown'] } },
    { refetchInterval: LIVE_MS },
  );
  return (
    <Loaded query={wallet} record_id={wallet_id} rows={8}>
      {(record) => <WalletView key={wallet_id} wallet={record as LiveWallet} />}
    </Loaded>
  );
}

function WalletView({ wallet }: { wallet: LiveWallet }): ReactNode {
  const texts = useTexts(TEXTS);
  const { why, sheet, do: deed, movements } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const change = (next: WalletSearch) =>
    void navigate({
      search: ({ zone }) => ({ zone, ...(movements ? { movements } : {}), ...next }),
      resetScroll: false,
    });
  const close = () => change({});
  const side =
    sheet === 'record' ? (
      <SideSheet title={texts.record} subtitle={<CopyId id={wallet.id} />} onClose={close}>
        <RecordTools record={wallet} path={`/wallets/${wallet.id}/balance/real-time`} entity_id={wallet.id} />
      </SideSheet>
    ) : why === 'balance' ? (
      <BalanceThread wallet={wallet} onClose={close} />
    ) : null;
  const dialogue = { wallet, onClose: close };
  return (
    <WithSheet sheet={side}>
      <WalletHead wallet={wallet} onChange={change} />
      <WalletFigures wallet={wallet} onAsk={() => change({ why: 'balance' })} />
      <Lots wallet={wallet} />
      <Section title={texts.overTime} hint={texts.overTimeHint}>
        <Suspense>
          <BalanceChart wallet={wallet} />
        </Suspense>
      </Section>
      <Ledger wallet={wallet} movements={movements} />
      {deed === 'top-up' && <TopUpWallet {...dialogue} />}
      {deed === 'debit' && <DebitWallet {...dialogue} />}
      {deed === 'close' && <CloseWallet {...dialogue} />}
    </WithSheet>
  );
}

type WalletHeadProps = { wallet: LiveWallet; onChange: (next: WalletSearch) => void };

function WalletHead({ wallet, onChange }: WalletHeadProps): ReactNode {
  const texts = useTexts(TEXTS);
  const { customer_id, id, currency, balance, credit_balance, wallet_status } = wallet;
  const name = useCustomerNames([customer_id]).get(customer_id);
  const isOpen = wallet_status === 'active';
  const mayNot = useMayNot('wallet:write');
  const blocked = mayNot ?? (isOpen ? null : texts.notActive);
  return (
    <PageHead
      title={formatWalletName(wallet)}
      status={<WalletStatus wallet={wallet} />}
      subtitle={
        <>
          <Link
            from={FROM}
            to="/env/$environment_id/customers/$customer_id"
            params={(old) => ({ environment_id: old.environment_id, customer_id })}
            search={({ zone }) => ({ zone })}
          >
            <bdi>{name ?? customer_id}</bdi>
          </Link>
          {' · '}
          <CopyId id={id} />
        </>
      }
      figure={
        <>
          <BigMoney amount={balance} currency={currency} />
          <p className="label">
            {texts.balanceNow}
            {!isMoneyWallet(wallet) && (
              <>
                {', '}
                <Quantity value={credit_balance} unit={texts.creditsUnit} />
              </>
            )}
          </p>
        </>
      }
      actions={
        <>
          <MoreMenu
            actions={[
              { label: texts.record, onClick: () => onChange({ sheet: 'record' }) },
              { label: texts.close, blocked, onClick: () => onChange({ do: 'close' }) },
            ]}
          />
          <Button blocked={blocked} onClick={() => onChange({ do: 'debit' })}>
            {texts.debit}
          </Button>
          <Button isPrimary blocked={blocked} onClick={() => onChange({ do: 'top-up' })}>
            {texts.topUp}
          </Button>
        </>
      }
    />
  );
}

function WalletFigures({ wallet, onAsk }: { wallet: LiveWallet; onAsk: () => void }): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const { currency, current_period_usage, unpaid_invoices_amount, real_time_balance, as_of, wallet_status } = wallet;
  const breakdown = wallet.credits_available_breakdown;
  if (wallet_status !== 'active') return null;
  return (
    <dl className={styles.figures}>
      <div>
        <dt>{texts.used}</dt>
        <dd>
          <Money amount={current_period_usage} currency={currency} />
        </dd>
      </div>
      <div>
        <dt>{texts.unpaid}</dt>
        <dd>
          <Money amount={unpaid_invoices_amount} currency={currency} />
        </dd>
      </div>
      <div>
        <dt>{texts.after}</dt>
        <dd>
          {real_time_balance === null ? (
            <Money amount={null} />
          ) : (
            <WhyButton why={texts.why(formatMoney(language, real_time_balance, currency))} onOpen={onAsk}>
              <Money amount={real_time_balance} currency={currency} />
            </WhyButton>
          )}
          {as_of && (
            <p className="label">
              {texts.asOf} <ExactTime at={as_of} />
            </p>
          )}
        </dd>
      </div>
      {breakdown && (
        <div>
          <dt>{texts.kinds}</dt>
          <dd className={styles.small}>
            {texts.breakdown(formatQuantity(language, breakdown.purchased), formatQuantity(language, breakdown.free))}
          </dd>
        </div>
      )}
    </dl>
  );
}
