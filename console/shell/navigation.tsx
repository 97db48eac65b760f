import { Menu, UnstyledButton } from '@mantine/core';
import { Link, type LinkProps, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import type { SessionEnvironment } from '../client/session.ts';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { Mark } from './mark.tsx';
import { PLACE_TEXTS } from './place-texts.ts';
import styles from './shell.module.css';
import { SignOut } from './sign-out.tsx';

type NavigationPlace = { readonly key: keyof typeof PLACE_TEXTS.en; readonly to: LinkProps['to'] };
type NavigationGroup = { readonly key: keyof typeof GROUP_NAMES | null; readonly places: readonly NavigationPlace[] };

const GROUPS: readonly NavigationGroup[] = [
  {
    key: null,
    places: [
      { key: 'home', to: '/env/$environment_id' },
      { key: 'customers', to: '/env/$environment_id/customers' },
      { key: 'usage', to: '/env/$environment_id/usage' },
      { key: 'events', to: '/env/$environment_id/events' },
    ],
  },
  {
    key: 'pricing',
    places: [
      { key: 'meters', to: '/env/$environment_id/meters' },
      { key: 'plans', to: '/env/$environment_id/plans' },
    ],
  },
  {
    key: 'billing',
    places: [
      { key: 'subscriptions', to: '/env/$environment_id/subscriptions' },
      { key: 'invoices', to: '/env/$environment_id/invoices' },
      { key: 'wallets', to: '/env/$environment_id/wallets' },
    ],
  },
  {
    key: 'connect',
    places: [
      { key: 'api-keys', to: '/env/$environment_id/api-keys' },
      { key: 'webhooks', to: '/env/$environment_id/webhooks' },
    ],
  },
];

type NavigationProps = { environment: SessionEnvironment; environments: readonly SessionEnvironment[] };

export function Navigation({ environment, environments }: NavigationProps): ReactNode {
  const texts = useTexts(TEXTS);
  // On a narrow screen the navigation is a bar whose list opens.
  const [isOpen, setOpen] = useState(false);
  return (
    <nav className={styles.nav} aria-label={texts.navigation} data-open={isOpen || undefined}>
      <div className={styles.brand}>
        <Mark />
        Farthing
        <button type="button" className={styles.toggle} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {texts.menu}
        </button>
      </div>
      <EnvironmentSwitch environment={environment} environments={environments} />
      <div className={styles.places} onClick={() => setOpen(false)}>
        {GROUPS.map(({ key, places }) => (
          <div key={key ?? 'first'} role="group" aria-label={key === null ? undefined : texts[key]}>
            {key !== null && <h6>{texts[key]}</h6>}
            {places.map((place) => (
              <PlaceLink key={place.key} place={place} />
            ))}
          </div>
        ))}
        <div className={styles.last}>
          <PlaceLink place={{ key: 'settings', to: '/env/$environment_id/settings' }} />
          <SignOut className={styles.place} />
        </div>
      </div>
    </nav>
  );
}

function PlaceLink({ place: { key, to } }: { place: NavigationPlace }): ReactNode {
  const places = useTexts(PLACE_TEXTS);
  return (
    <Link
      to={to}
      params={true}
      className={styles.place}
      activeOptions={{ exact: key === 'home', includeSearch: false }}
      activeProps={{ 'aria-current': 'page', className: styles.on }}
    >
      {places[key]}
    </Link>
  );
}

function EnvironmentSwitch({ environment, environments }: NavigationProps): ReactNode {
  const texts = useTexts(TEXTS);
  const navigate = useNavigate();
  return (
    <Menu position="bottom-start" width="target">
      <Menu.Target>
        <UnstyledButton className={styles.switch}>
          <span>
            <span className="visually-hidden">{texts.switchFrom} </span>
            <i className={styles.dot} data-type={environment.test_clock_id ? 'clock' : environment.type} />
            <bdi>{environment.name}</bdi>
          </span>
          <span aria-hidden="true">⌄</span>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        {environments.map((each) => (
          <Menu.Item
            key={each.id}
            leftSection={<i className={styles.dot} data-type={each.test_clock_id ? 'clock' : each.type} />}
            onClick={() => void navigate({ to: '/env/$environment_id', params: { environment_id: each.id } })}
          >
            <bdi>{each.name}</bdi>
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

const GROUP_NAMES = { pricing: 'Pricing', billing: 'Billing', connect: 'Connect' };

const TEXTS = defineTexts(
  {
    ...GROUP_NAMES,
    navigation: 'Main',
    menu: 'Menu',
    switchFrom: 'Switch the environment:',
  },
  {
    de: {
      navigation: 'Hauptnavigation',
      menu: 'Menü',
      pricing: 'Preise',
      billing: 'Abrechnung',
      connect: 'Anbindung',
      switchFrom: 'Umgebung wechseln:',
    },
  },
);
