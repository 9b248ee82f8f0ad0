import { mount } from 'svelte';
import '../styles/tokens.css';
import './app.css';
import Dashboard from './Dashboard.svelte';

const target = document.getElementById('app');
if (target) mount(Dashboard, { target });
