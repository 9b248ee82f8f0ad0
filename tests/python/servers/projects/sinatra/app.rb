require 'sinatra'

get '/' do
  'hello from sinatra'
end
