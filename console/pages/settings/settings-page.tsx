/** The settings: of the company and its documents, of the person who is signed in, and of the team and its environments. */
import { Tabs } from '@mantine/core';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type ComponentType, type ReactNode, useEffect, useRef } from 'react';
import { PageHead } from '../../components/page.tsx';
import { WithSheet } from '../../components/side-sheet.tsx';
import { defineTexts, useTexts } from '../../texts/texts.ts';
import { AccountTab } from './account-tab.tsx';
import { AuditTab } from './audit-tab.tsx';
import { CompanyTab } from './company-tab.tsx';
import { EnvironmentSheet } from './environment-sheet.tsx';
import { EnvironmentsTab } from './environments-tab.tsx';
import { MailTab } from './mail-tab.tsx';
import { NumberingTab } from './numbering-tab.tsx';
import { SETTINGS_TABS, type SettingsTab } from './routes.ts';
import styles from './settings.module.css';
import type { OpenSheet, SheetProps, TabProps } from './tab-props.ts';
import { TaxRateSheet, TaxTab } from './tax-tab.tsx';
import { MemberSheet, TeamTab } from './team-tab.tsx';

const FROM = '/env/$environment_id/settings';
const TABS: Record<SettingsTab, ComponentType<TabProps>> = {
  company: CompanyTab,
  numbering: NumberingTab,
  tax: TaxTab,
  mail: MailTab,
  account: AccountTab,
  team: TeamTab,
  environments: EnvironmentsTab,
  audit: AuditTab,
};
const SHEETS: Partial<Record<SettingsTab, ComponentType<SheetProps>>> = {
  tax: TaxRateSheet,
  team: MemberSheet,
  environments: EnvironmentSheet,
};

export function SettingsPage(): ReactNode {
  const texts = useTexts(TEXTS);
  const { tab = 'company', sheet, id } = useSearch({ from: FROM });
  const navigate = useNavigate({ from: FROM });
  const openSheet: OpenSheet = (search = {}) =>
    void navigate({ search: (old) => ({ zone: old.zone, tab: old.tab, ...search }) });
  const list = useRef<HTMLDivElement>(null);
  // On a narrow screen the list of tabs scrolls, and the open one may be outside of it.
  useEffect(() => {
    const open = list.current?.querySelector(`[data-tab="${tab}"]`);
    open?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [tab]);
  const Tab = TABS[tab];
  const TabSheet = SHEETS[tab];
  return (
    <WithSheet
      sheet={sheet && TabSheet && <TabSheet key={`${sheet} ${id}`} sheet={sheet} id={id} onClose={() => openSheet()} />}
    >
      <PageHead title={texts.title} />
      <Tabs
        value={tab}
        color="var(--copper)"
        keepMounted={false}
        onChange={(next) =>
          void navigate({ search: (old) => ({ zone: old.zone, tab: SETTINGS_TABS.find((each) => each === next) }) })
        }
      >
        <Tabs.List ref={list} className={styles.tabs}>
          {SETTINGS_TABS.map((each) => (
            <Tabs.Tab key={each} value={each} data-tab={each}>
              {texts[each]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={tab} pt="md">
          <Tab openSheet={openSheet} />
        </Tabs.Panel>
      </Tabs>
    </WithSheet>
  );
}

const TEXTS = defineTexts(
  {
    title: 'Settings',
    company: 'Company',
    numbering: 'Invoices',
    tax: 'Tax',
    mail: 'Mail',
    account: 'Your account',
    team: 'Team',
    environments: 'Environments',
    audit: 'Audit log',
  },
  {
    de: {
      title: 'Einstellungen',
      company: 'Unternehmen',
      numbering: 'Rechnungen',
      tax: 'Steuern',
      mail: 'E-Mail',
      account: 'Ihr Konto',
      team: 'Team',
      environments: 'Umgebungen',
      audit: 'Protokoll',
    },
  },
);
