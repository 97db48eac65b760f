import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function NewPricePage(): ReactNode {
  return <PageHead title="NewPricePage" />;
}
