#!/usr/bin/perl
use Mojolicious::Lite -signatures;

get '/' => sub ($c) { $c->render(text => 'hello from mojolicious') };

app->start;
